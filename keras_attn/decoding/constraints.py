"""Constraints on the tokens that a strategy may choose."""

from typing import Any, NamedTuple

import numpy as np
from keras import ops

from keras_attn.backend import take_along_axis
from keras_attn.typing import Tensor, TensorLike


class Constraints(NamedTuple):
    """Constraints on the tokens of each step.

    Pad, start and suppressed tokens are never generated, and an end token not
    before `min_new_tokens`. At the positions of a forced prefix only its token
    is allowed, even if another rule forbids it. An end token that is also the
    pad or the start token can be generated.

    Args:
        pad_id: int.
        start_id: int.
        end_ids: tuple of int.
        suppress_tokens: tuple of int. Never generated.
        min_new_tokens: int. Minimum number of generated tokens, end included.
        prefix: int32 (B, L), the tokens that each sequence begins with, and
            `pad_id` after them; None: no prefix.
    """

    pad_id: int
    start_id: int
    end_ids: tuple[int, ...]
    suppress_tokens: tuple[int, ...] = ()
    min_new_tokens: int = 0
    prefix: Any = None

    def allow(
        self, log_probs: TensorLike, step: TensorLike, active: TensorLike
    ) -> Tensor:
        """Sets the log-probability of forbidden tokens to -inf.

        The others are not renormalized. All tokens of sequences that are not
        active get -inf, even if the model returned NaN.

        Args:
            log_probs: float32 (B, k, V), of the next token.
            step: int32 (), the number of tokens generated so far; or int32
                (B, k), that of each sequence.
            active: bool (B, k), which sequences are still extended.

        Returns:
            Float32 (B, k, V).

        Raises:
            ValueError: a suppressed token is out of range, or no token is left.
        """
        ids = np.arange(log_probs.shape[-1])
        forbidden = ops.convert_to_tensor(self._never(ids))
        if self.min_new_tokens > 1:
            self._check_early(ids)
            early = ops.less(step + 1, self.min_new_tokens)
            forbidden = forbidden | (
                ops.convert_to_tensor(np.isin(ids, self.end_ids))
                & early[..., None]
            )
        if len(forbidden.shape) == 1:
            forbidden = forbidden[None, None]
        if self.prefix is not None:
            forced = self._forced(step)[..., None]
            ids = ops.convert_to_tensor(ids.astype("int32"))
            forbidden = ops.where(
                ops.equal(forced, self.pad_id),
                forbidden,
                ops.not_equal(ids[None, None], forced),
            )
        forbidden = ops.logical_or(
            forbidden, ops.logical_not(active)[..., None]
        )
        return ops.where(forbidden, -float("inf"), log_probs)

    def _forced(self, step):
        """Returns the tokens of the prefix at a step, int32 (B, 1 or k)."""
        if not len(step.shape):
            return ops.take(self.prefix, step, axis=1)[:, None]
        last = self.prefix.shape[1] - 1
        return take_along_axis(self.prefix, ops.minimum(step, last))

    def _never(self, ids):
        outside = [v for v in self.suppress_tokens if not 0 <= v < len(ids)]
        if outside:
            raise ValueError(
                f"`suppress_tokens` must lie in [0, {len(ids)}). "
                f"Received: {outside}"
            )
        never = {self.pad_id, self.start_id} - {*self.end_ids}
        forbidden = np.isin(ids, [*never, *self.suppress_tokens])
        if forbidden.all():
            raise ValueError(
                "`suppress_tokens` must leave a token to be generated, besides "
                f"pad and start. Received: all of [0, {len(ids)})"
            )
        return forbidden

    def _check_early(self, ids):
        if (self._never(ids) | np.isin(ids, self.end_ids)).all():
            raise ValueError(
                "`suppress_tokens` must leave a token besides the end token if "
                "`min_new_tokens` is above 1. Received: "
                f"min_new_tokens={self.min_new_tokens} and all other ids of "
                f"[0, {len(ids)})"
            )
