"""What models that stand on an encoder want of it."""

import keras


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
