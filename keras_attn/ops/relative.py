"""Relative positions: sinusoids of distances and the relative shift."""

from keras import ops

from keras_attn import checks
from keras_attn.backend import pad
from keras_attn.ops.sinusoids import sine_and_cosine
from keras_attn.typing import Tensor, TensorLike


def relative_sinusoids(distances: TensorLike, width: int) -> Tensor:
    """Computes the sinusoids of distances, which may be negative.

        R[d] = [sin(d w_0) ... sin(d w_{D/2-1}), cos(d w_0) ...],
        w_i = 10000^(-2i / D)

    (Dai et al. 2019, sec. 3.3, https://arxiv.org/abs/1901.02860).

    Args:
        distances: int32 (R,), in tokens.
        width: int, even. D.

    Returns:
        Float32 (R, D).

    Raises:
        ValueError: if `width` is odd.

    Examples:
        >>> waves = keras_attn.ops.relative.relative_sinusoids(
        ...     keras.ops.convert_to_tensor([-1, 1]), 2)
        >>> keras.ops.convert_to_numpy(waves).round(2).tolist()
        [[-0.8399999737739563, 0.5400000214576721], \
[0.8399999737739563, 0.5400000214576721]]
    """
    sine, cosine = sine_and_cosine(ops.abs(distances)[None], width)
    sign = ops.cast(ops.sign(distances), sine.dtype)[:, None]
    return ops.concatenate([sine[0] * sign, cosine[0]], axis=-1)


def relative_shift(scores: TensorLike, keys: int | TensorLike) -> Tensor:
    """Converts scores of distances to scores of keys, without a gather.

        output[t, s] = scores[t, s + T - 1 - t]

    Row t is shifted left by T - 1 - t columns, so that column j belongs to key
    j - (T - 1 - t) (Dai et al. 2019, appendix B,
    https://arxiv.org/abs/1901.02860).

    Args:
        scores: float (B, N, T, R).
        keys: int or scalar tensor. S <= R.

    Returns:
        Float (B, N, T, S). If s + T - 1 - t >= R, the score is finite but
        arbitrary, and the key must be masked.

    Raises:
        ValueError: if `scores` are not float (B, N, T, R) or `keys` is not from
            0 to R.

    Examples:
        >>> scores = keras.ops.reshape(keras.ops.arange(6.0), (1, 1, 2, 3))
        >>> keras.ops.convert_to_numpy(
        ...     keras_attn.ops.relative_shift(scores, 2))[0, 0].tolist()
        [[1.0, 2.0], [3.0, 4.0]]
    """
    checks.floats("scores", checks.tensor("scores", scores))
    batch, heads, queries, count = ops.shape(checks.rank("scores", scores, 4))
    most = count if isinstance(count, int) else None
    checks.count("keys", keys, 0, most)
    # Padding one column and dropping the first T entries shifts each row by one
    # more than the next.
    scores = pad(scores, [(0, 0), (0, 0), (0, 0), (1, 0)])
    scores = ops.reshape(scores, (batch, heads, queries * (count + 1)))
    scores = scores[:, :, queries:]
    scores = ops.reshape(scores, (batch, heads, queries, count))
    return scores[..., :keys]
