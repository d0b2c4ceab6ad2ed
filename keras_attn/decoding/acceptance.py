"""Acceptance of drafted tokens, as in speculative sampling."""

import numpy as np
from keras import ops

from keras_attn.backend import take_along_axis
from keras_attn.typing import Tensor, TensorLike


def accept(
    target: TensorLike,
    draft: TensorLike | None,
    tokens: TensorLike,
    counts: TensorLike,
    uniforms: TensorLike,
) -> tuple[Tensor, Tensor]:
    """Accepts drafted tokens so that the target's distribution is sampled.

        accept x ~ q with probability min(1, p(x) / q(x))
        after a rejection draw from norm(max(0, p - q)), else from p

    Leviathan et al. 2023, algorithm 1, https://arxiv.org/abs/2211.17192; Chen
    et al. 2023, https://arxiv.org/abs/2302.01318.

    Args:
        target: float32 (R, n + 1, V), p at each drafted token, and after them.
        draft: float32 (R, n, V), q, from which the tokens were drawn; None: the
            tokens are certain, q(x) = 1.
        tokens: int32 (R, n), the drafted tokens.
        counts: int32 (R,), how many of them there are.
        uniforms: float32 (R, n), in [0, 1).

    Returns:
        Int32 (R,), the number of accepted tokens; and float32 (R, V), weights,
        proportional to the distribution of the token after them.
    """
    offsets = ops.arange(tokens.shape[1], dtype="int32")
    chosen = tokens[..., None]
    p = take_along_axis(target[:, :-1], chosen)[..., 0]
    if draft is not None:
        uniforms = uniforms * take_along_axis(draft, chosen)[..., 0]
    agree = ops.logical_and(uniforms < p, offsets < counts[:, None])
    accepted = leading(agree)
    rejected = accepted < counts
    p = _at(target, accepted)
    if draft is None:
        token = take_along_axis(
            tokens, ops.minimum(accepted, tokens.shape[1] - 1)[:, None]
        )
        q = ops.cast(ops.arange(p.shape[-1], dtype="int32") == token, p.dtype)
    else:
        q = _at(draft, accepted)
    residual = ops.maximum(p - ops.where(rejected[:, None], q, 0.0), 0.0)
    # Rounding can reject a token although p = q.
    some = ops.any(residual > 0, axis=-1, keepdims=True)
    return accepted, ops.where(some, residual, p)


def leading(flags: TensorLike) -> Tensor:
    """Returns how many flags of each row (R, n) are True before a False."""
    size = flags.shape[1]
    indices = ops.convert_to_tensor(np.arange(size, dtype="int32"))
    return ops.min(ops.where(flags, size, indices), axis=1)


def _at(x, index):
    """Returns x[r, index[r]] of x (R, n, V); 0 if the index is n."""
    at = ops.arange(x.shape[1], dtype="int32") == index[:, None]
    return ops.sum(ops.where(at[..., None], x, 0.0), axis=1)
