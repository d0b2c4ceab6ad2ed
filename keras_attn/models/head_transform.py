"""The transform of token vectors in a head, as in BERT."""

from typing import Any

import keras

from keras_attn.layers.normalization import make_norm


def make_transform(
    encoder: keras.Model, width: int, dtype: Any
) -> tuple[keras.layers.Dense, keras.layers.Layer]:
    """Creates the layers of the transform Norm(f(h W + b)).

    The activation f, the epsilon and the kind of norm are those of the encoder,
    as is `use_bias`.

    Args:
        encoder: model with `hidden_dim`, `activation` and `epsilon`.
        width: int. Features of the output.
        dtype: dtype policy.

    Returns:
        Two built layers, the dense layer and the norm.

    Raises:
        ValueError: the encoder lacks an attribute.
    """
    required = "activation", "epsilon"
    if not all(hasattr(encoder, name) for name in required):
        raise ValueError(
            "`encoder` must have the attributes activation and epsilon for the "
            f"transform of a head. Received: {encoder!r}"
        )
    dense = keras.layers.Dense(
        width,
        activation=encoder.activation,
        use_bias=getattr(encoder, "use_bias", True),
        dtype=dtype,
        name="transform",
    )
    dense.build((None, None, encoder.hidden_dim))
    # Not "norm": that is the last norm of a pre-norm encoder.
    norm = make_norm(
        getattr(encoder, "normalization", "layer_norm"),
        encoder.epsilon,
        dtype=dtype,
        name="transform_norm",
    )
    norm.build((None, None, width))
    return dense, norm
