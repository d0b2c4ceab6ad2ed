"""Helpers of models that are built on an encoder."""

from typing import Any

import keras
from keras import ops

from keras_attn.backend import reduce_max
from keras_attn.models.input_checks import CheckedModel
from keras_attn.typing import Nest, Tensor, TensorLike


def check_encoder(encoder: keras.Model) -> keras.Model:
    """Returns `encoder`; raises ValueError if it is not one."""
    required = "encode", "check_inputs", "hidden_dim"
    if not all(hasattr(encoder, name) for name in required):
        raise ValueError(
            "`encoder` must be a keras_attn.models.Encoder, or have its "
            f"attributes {', '.join(required)}. Received: {encoder!r}"
        )
    return encoder


def with_encoder(config: dict[str, Any]) -> dict[str, Any]:
    """Returns a config with the encoder deserialized."""
    encoder = config.get("encoder")
    if not isinstance(encoder, dict):
        return config
    restored = keras.saving.deserialize_keras_object(encoder)
    return {**config, "encoder": restored}


def first_tokens(x: TensorLike, positions: TensorLike) -> Tensor:
    """Returns the vector of the first token of every row, after any padding.

    Args:
        x: float (B, T, D).
        positions: int32 (B, T), -1 at padding.

    Returns:
        Float (B, D).
    """
    first = ops.equal(positions, 0)[..., None]
    return ops.sum(ops.where(first, x, 0), axis=1)


def last_tokens(x: TensorLike, positions: TensorLike) -> Tensor:
    """Returns the vector of the last token of every row, before any padding.

    Args:
        x: float (B, T, D).
        positions: int32 (B, T), -1 at padding.

    Returns:
        Float (B, D).
    """
    return first_tokens(
        x, reduce_max(positions, axis=1, keepdims=True) - positions
    )


def encoder_specs(encoder: keras.Model) -> Nest:
    """Returns the specs of the inputs of an encoder, for `export`.

    Args:
        encoder: `Encoder`, or another model with `encode`.

    Returns:
        Nest of `keras.InputSpec`, or None to let Keras find them.
    """
    if isinstance(encoder, CheckedModel):
        return encoder.input_specs()
    return None


def encoded_shape(encoder: keras.Model, inputs_shape: Nest) -> Any:
    """Returns the shape of the sequence output of an encoder."""
    shape = encoder.compute_output_shape(inputs_shape)
    return shape["sequence_output"] if isinstance(shape, dict) else shape
