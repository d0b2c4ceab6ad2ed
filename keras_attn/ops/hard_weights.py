"""Hard attention: one-hot weights, of the largest score or sampled.

Sampling takes the argmax of the scores plus Gumbel noise, which is key s with
probability softmax(score)[s] (Gumbel 1954; Maddison et al. 2014,
https://arxiv.org/abs/1411.0030).
"""

from typing import Any

import numpy as np
from keras import ops

from keras_attn.backend import uniform
from keras_attn.ops.score_softmax import hidden, softmax
from keras_attn.typing import Tensor, TensorLike

_TINY = float(np.finfo("float32").tiny)


def gumbel_noise(shape: tuple[int, ...], seed: Any) -> Tensor:
    """Draws -log(-log(u)), u uniform in (0, 1).

    Args:
        shape: tuple of int or scalar tensors.
        seed: `keras.random.SeedGenerator`.

    Returns:
        Float32 of that shape.

    Examples:
        >>> from keras_attn.ops.hard_weights import gumbel_noise
        >>> seed = keras.random.SeedGenerator(1)
        >>> tuple(gumbel_noise((2, 3), seed).shape)
        (2, 3)
    """
    # Excludes 0, where the logarithm is -inf.
    return -ops.log(-ops.log(uniform(shape, seed, minval=_TINY)))


def one_hot_of_largest(scores: TensorLike) -> Tensor:
    """Computes the one-hot vector of the largest score of each row.

    Args:
        scores: float (..., S).

    Returns:
        Float (..., S). Ties are broken by the lower index.

    Examples:
        >>> from keras_attn.ops.hard_weights import one_hot_of_largest
        >>> scores = keras.ops.convert_to_tensor([[0.1, 3.0, 2.0]])
        >>> keras.ops.convert_to_numpy(one_hot_of_largest(scores)).tolist()
        [[0.0, 1.0, 0.0]]
    """
    chosen = ops.cast(ops.argmax(scores, axis=-1, keepdims=True), "int32")
    keys = ops.arange(ops.shape(scores)[-1], dtype="int32")
    return ops.cast(ops.equal(chosen, keys), scores.dtype)


def straight_through(
    scores: TensorLike,
    mask: TensorLike | None,
    noise: TensorLike,
    temperature: float,
) -> Tensor:
    """Samples a key, with the straight-through Gumbel-softmax gradient.

        forward:  one_hot(argmax(score + noise))
        gradient: that of softmax((score + noise) / temperature)

    Jang et al. 2017, sec. 2.2, https://arxiv.org/abs/1611.01144.

    Args:
        scores: float32 (..., S).
        mask: bool broadcastable to the scores, or None: nothing is masked.
        noise: float32 (..., S), from `gumbel_noise`.
        temperature: float > 0.

    Returns:
        Float32 (..., S), exactly 0 or 1.

    Examples:
        >>> from keras_attn.ops.hard_weights import straight_through
        >>> scores = keras.ops.convert_to_tensor([[0.1, 3.0, 2.0]])
        >>> weights = straight_through(scores, None, 0 * scores, 0.5)
        >>> keras.ops.convert_to_numpy(weights).tolist()
        [[0.0, 1.0, 0.0]]
    """
    noisy = scores + noise
    soft = softmax(hidden(noisy / temperature, mask))
    chosen = one_hot_of_largest(hidden(noisy, mask))
    # In this order the added term is exactly 0.
    return chosen + (soft - ops.stop_gradient(soft))


def log_probability(scores: TensorLike, chosen: TensorLike) -> Tensor:
    """Computes the log-probability of sampled keys.

    Args:
        scores: float32 (..., S), masked by `hidden`.
        chosen: float32 (..., S), one-hot.

    Returns:
        Float32 (...), in nats.

    Examples:
        >>> from keras_attn.ops.hard_weights import log_probability
        >>> scores = keras.ops.zeros((1, 2))
        >>> chosen = keras.ops.convert_to_tensor([[0.0, 1.0]])
        >>> round(float(log_probability(scores, chosen)[0]), 4)
        -0.6931
    """
    return ops.sum(chosen * ops.log_softmax(scores, axis=-1), axis=-1)
