"""What no strategy may choose: pad, start, and what the caller rules out."""

from typing import Any, NamedTuple

import numpy as np
from keras import ops


class Constraints(NamedTuple):
    """Says which tokens may stand where.

    Pad and start are never generated, and neither are banned tokens; the end
    token does not come before `min_new_tokens`. Where a prefix is forced,
    nothing else stands, and nothing of that forbids it. An end token that is
    also the pad or the start token can be generated.

    Args:
        pad_id: int.
        start_id: int.
        end_id: int.
        suppress_tokens: tuple of int. Never generated.
        min_new_tokens: int. The fewest tokens of a sequence, its end included.
        prefix: int32 (B, L), the tokens that each sequence begins with, and
            `pad_id` behind them; None: nothing is forced.
    """

    pad_id: int
    start_id: int
    end_id: int
    suppress_tokens: tuple = ()
    min_new_tokens: int = 0
    prefix: Any = None

    def allow(self, log_probs, step, alive):
        """Gives what is ruled out a log-probability of -inf.

        The others keep theirs: they are not renormalised. What a model says
        about a sequence that is not continued counts for nothing, NaN included.

        Args:
            log_probs: float32 (B, k, V), of the next token.
            step: int32 (), how many tokens there are already.
            alive: bool (B, k), which sequences are continued.

        Returns:
            Float32 (B, k, V).

        Raises:
            ValueError: a banned token is out of range, or none is left.
        """
        ids = np.arange(log_probs.shape[-1])
        hidden = ops.convert_to_tensor(self._never(ids))
        if self.min_new_tokens > 1:
            early = ops.less(step + 1, self.min_new_tokens)
            hidden = hidden | (
                ops.convert_to_tensor(ids == self.end_id) & early
            )
        hidden = hidden[None, None]
        if self.prefix is not None:
            forced = ops.take(self.prefix, step, axis=1)[:, None, None]
            ids = ops.convert_to_tensor(ids.astype("int32"))
            hidden = ops.where(
                ops.equal(forced, self.pad_id),
                hidden,
                ops.not_equal(ids[None, None], forced),
            )
        hidden = ops.logical_or(hidden, ops.logical_not(alive)[..., None])
        return ops.where(hidden, -float("inf"), log_probs)

    def _never(self, ids):
        outside = [v for v in self.suppress_tokens if not 0 <= v < len(ids)]
        if outside:
            raise ValueError(
                f"`suppress_tokens` must lie in [0, {len(ids)}). "
                f"Received: {outside}"
            )
        never = {self.pad_id, self.start_id} - {self.end_id}
        hidden = np.isin(ids, [*never, *self.suppress_tokens])
        if hidden.all():
            raise ValueError(
                "`suppress_tokens` must leave a token to be generated, besides "
                f"pad and start. Received: all of [0, {len(ids)})"
            )
        return hidden
