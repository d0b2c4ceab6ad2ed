"""What all scores of one query and one key have in common."""

import keras

from keras_attn.backend import apply_dense
from keras_attn.ops.scores import scaled_dot_scores, widened


class Score(keras.layers.Layer):
    """Says how well each query fits each key.

    Abstract: a subclass overrides `call`, and `build` where it has weights.

    Args:
        initializer: initializer of the kernels.
        **kwargs: arguments of `keras.layers.Layer`: `name`, `dtype`, ...

    Call arguments:
        query: float (B, T, D).
        key: float (B, S, D').
        key_positions: int32 (B, S), a size-1 batch axis allowed, or None:
            0..S-1.

    Returns:
        Float (B, T, S), float32 at least: in half precision a score of a few
        hundred would already have lost its fraction.
    """

    def __init__(self, initializer="glorot_uniform", **kwargs):
        super().__init__(**kwargs)
        # The mask is the attention's business; Keras would warn that it is
        # lost.
        self.supports_masking = True
        self.initializer = keras.initializers.get(initializer)

    def _dense(self, name, features, width, **kwargs):
        return built_dense(self, name, features, width, **kwargs)


def built_dense(owner, name, features, width, **kwargs):
    """Returns a built `keras.layers.Dense` for a part of an attention.

    Args:
        owner: layer, of whose `initializer` and dtype policy it is.
        name: str.
        features: int. Width of its input.
        width: int. Width of its output.
        **kwargs: arguments of `keras.layers.Dense`.
    """
    dense = keras.layers.Dense(
        width,
        kernel_initializer=owner.initializer.clone(),
        dtype=owner.dtype_policy,
        name=name,
        **kwargs,
    )
    dense.supports_masking = True
    dense.build((None, None, features))
    return dense


def dot_scores(query, key, scale=1.0):
    """Computes scale * q . k, float32 (B, T, S); None: scale 1 / sqrt(D)."""
    return scaled_dot_scores(query[:, :, None], key[:, :, None], scale)[:, 0]


def projected(dense, x):
    """Applies a dense layer, float32 at least."""
    return widened(apply_dense(dense, x))


def check_equal_widths(name, query_shape, key_shape):
    """Raises ValueError where query and key are not of one width."""
    if query_shape[-1] != key_shape[-1]:
        raise ValueError(
            f"`query` and `key` must have the same width for the score "
            f"{name!r}. Received: {tuple(query_shape)} and {tuple(key_shape)}"
        )
