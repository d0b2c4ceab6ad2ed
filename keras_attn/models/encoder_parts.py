"""What models that stand on an encoder want of it."""

import keras
from keras import ops


def check_encoder(encoder):
    """Returns `encoder` where it is one, else raises ValueError."""
    wanted = "encode", "check_inputs", "hidden_dim"
    if not all(hasattr(encoder, name) for name in wanted):
        raise ValueError(
            "`encoder` must be a keras_attn.models.Encoder, or offer what it "
            f"does ({', '.join(wanted)}). Received: {encoder!r}"
        )
    return encoder


def with_encoder(config):
    """Returns a config in which the encoder is a model again."""
    encoder = config["encoder"]
    if not isinstance(encoder, dict):
        return config
    restored = keras.saving.deserialize_keras_object(encoder)
    return {**config, "encoder": restored}


def first_tokens(x, positions):
    """Takes the vector of the first token of every row, wherever it stands.

    Args:
        x: float (B, T, D).
        positions: int32 (B, T), -1 where there is no token.

    Returns:
        Float (B, D).
    """
    first = ops.equal(positions, 0)[..., None]
    return ops.sum(ops.where(first, x, 0), axis=1)


def last_tokens(x, positions):
    """Takes the vector of the last token of every row, wherever it stands.

    Args:
        x: float (B, T, D).
        positions: int32 (B, T), -1 where there is no token.

    Returns:
        Float (B, D).
    """
    return first_tokens(
        x, ops.max(positions, axis=1, keepdims=True) - positions
    )


def encoded_shape(encoder, inputs_shape):
    """Returns the shape of an encoder's vectors, whatever else it returns."""
    shape = encoder.compute_output_shape(inputs_shape)
    return shape["sequence_output"] if isinstance(shape, dict) else shape
