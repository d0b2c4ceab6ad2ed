"""Checks of the argument combinations of a recurrent model."""

from typing import Any

from keras_attn import checks
from keras_attn.layers import ScoredAttention
from keras_attn.layers.scores.make_score import SCORES


def check_together(
    attention: Any,
    input_feeding: bool,
    scheduled_sampling: float | None,
    max_sequence_length: int | None,
) -> None:
    """Raises ValueError for incompatible arguments.

    Args:
        attention: as for `RecurrentSeq2Seq`.
        input_feeding: as for `RecurrentSeq2Seq`.
        scheduled_sampling: as for `RecurrentSeq2Seq`.
        max_sequence_length: as for `RecurrentSeq2Seq`.
    """
    if isinstance(attention, str):
        checks.choice("attention", attention, (*SCORES, None))
    elif attention is not None and not isinstance(attention, ScoredAttention):
        raise ValueError(
            "`attention` must be the name of a score, a ScoredAttention or "
            f"None. Received: attention={checks.shown(attention)}"
        )
    checks.boolean("input_feeding", input_feeding)
    if attention is None and input_feeding:
        raise ValueError(
            "`input_feeding` needs attention. "
            "Received: input_feeding=True with attention=None"
        )
    if attention == "location" and max_sequence_length is None:
        raise ValueError(
            "`max_sequence_length` must be given for the location score. "
            "Received: max_sequence_length=None"
        )
    if scheduled_sampling is not None and not (
        isinstance(scheduled_sampling, (int, float))
        and not isinstance(scheduled_sampling, bool)
        and 0 <= scheduled_sampling <= 1
    ):
        raise ValueError(
            "`scheduled_sampling` must lie in [0, 1]. "
            f"Received: scheduled_sampling={scheduled_sampling!r}"
        )
    if attention is None or isinstance(attention, str):
        return
    if attention.hard == "reinforce":
        raise ValueError(
            "`attention` must be differentiable: RecurrentSeq2Seq has no "
            'Reinforce layer. Received: hard="reinforce"'
        )
    stepwise = input_feeding or scheduled_sampling is not None
    if stepwise and (attention.hard or attention.dropout):
        raise ValueError(
            "`attention` must be deterministic with `input_feeding` or "
            "`scheduled_sampling`, which run step by step. Received: "
            f"hard={attention.hard!r}, dropout={attention.dropout}"
        )
