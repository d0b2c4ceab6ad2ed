"""Which arguments of a recurrent model go together."""

from keras_attn.layers import ScoredAttention


def check_together(
    attention, input_feeding, scheduled_sampling, max_sequence_length
):
    """Raises ValueError where arguments do not go together.

    Args:
        attention: as for `RecurrentSeq2Seq`.
        input_feeding: likewise.
        scheduled_sampling: likewise.
        max_sequence_length: likewise.
    """
    if attention is None and input_feeding:
        raise ValueError(
            "`input_feeding` feeds what attention found. "
            "Received: input_feeding=True with attention=None"
        )
    if attention == "location" and max_sequence_length is None:
        raise ValueError(
            "`max_sequence_length` must be given for the location score. "
            "Received: max_sequence_length=None"
        )
    if scheduled_sampling is not None and not (
        isinstance(scheduled_sampling, (int, float))
        and 0 <= scheduled_sampling <= 1
    ):
        raise ValueError(
            "`scheduled_sampling` must lie in [0, 1]. "
            f"Received: scheduled_sampling={scheduled_sampling!r}"
        )
    if attention is None or isinstance(attention, str):
        return
    if not isinstance(attention, ScoredAttention):
        raise ValueError(
            "`attention` must be the name of a score, a ScoredAttention or "
            f"None. Received: attention={attention!r}"
        )
    if attention.hard == "reinforce":
        raise ValueError(
            "`attention` must have a gradient: RecurrentSeq2Seq has no "
            'Reinforce layer. Received: hard="reinforce"'
        )
    steps = input_feeding or scheduled_sampling is not None
    if steps and (attention.hard or attention.dropout):
        raise ValueError(
            "`attention` must draw nothing where steps are taken one by one, "
            "with `input_feeding` or `scheduled_sampling`. Received: "
            f"hard={attention.hard!r}, dropout={attention.dropout}"
        )
