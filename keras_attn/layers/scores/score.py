"""Base class of the scores, with shared helpers."""

from typing import Any

import keras

from keras_attn.backend import TorchNames, apply_dense
from keras_attn.ops.scores import head_scores, widened
from keras_attn.typing import Initializer, Shape, Tensor, TensorLike


class Score(TorchNames, keras.layers.Layer):
    """Computes a score for each pair of query and key.

    Abstract: a subclass overrides `call`, and `build` if it has weights.

    Args:
        initializer: initializer of the kernels.
        **kwargs: arguments of `keras.layers.Layer`: `name`, `dtype`, ...

    Call arguments:
        query: float (B, T, D).
        key: float (B, S, D').
        key_positions: int32 (B, S), a size-1 batch axis allowed. Default None:
            0..S-1.

    Returns:
        Float (B, T, S), at least float32: in half precision, scores of a few
        hundred would lose most of their fractional part.
    """

    def __init__(
        self, initializer: Initializer = "glorot_uniform", **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        # The attention layer handles the mask; Keras would warn that it is
        # lost (as of Keras 3.15.1).
        self.supports_masking = True
        self.initializer: Initializer = keras.initializers.get(initializer)

    def _dense(self, name, features, width, **kwargs):
        return built_dense(self, name, features, width, **kwargs)


def built_dense(
    owner: Any, name: str, features: Any, width: Any, **kwargs: Any
) -> keras.layers.Dense:
    """Creates and builds a `keras.layers.Dense` sublayer of an attention layer.

    Args:
        owner: layer that provides the `initializer` and the dtype policy.
        name: str.
        features: int. Input width.
        width: int. Output width.
        **kwargs: arguments of `keras.layers.Dense`.
    """
    dense = keras.layers.Dense(
        width,
        kernel_initializer=owner.initializer.clone(),
        dtype=owner.dtype_policy,
        name=name,
        **kwargs,
    )
    # The default of a `Dense` as of Keras 3.15.1.
    dense.supports_masking = True
    dense.build((None, None, features))
    return dense


def dot_scores(
    query: TensorLike, key: TensorLike, scale: float | None = 1.0
) -> Tensor:
    """Computes scale * q . k, float32 (B, T, S). None: scale 1 / sqrt(D)."""
    return head_scores(query[:, :, None], key[:, :, None], scale)[:, 0]


def projected(dense: Any, x: TensorLike) -> Tensor:
    """Applies a dense layer; the result is at least float32."""
    return widened(apply_dense(dense, x))


def check_equal_widths(name: str, query_shape: Shape, key_shape: Shape) -> None:
    """Raises ValueError if query and key differ in width."""
    if query_shape[-1] != key_shape[-1]:
        raise ValueError(
            f"`query` and `key` must have the same width for the score "
            f"{name!r}. Received: {tuple(query_shape)} and {tuple(key_shape)}"
        )
