"""The names of activations in a `config.json`, and what they are here."""

import keras

from keras_attn.layers.gelu_tanh import gelu_tanh

# Of several names for one function the first is the one that is written.
ACTIVATIONS = {
    "swish": "silu",
    "silu": "silu",
    "relu": "relu",
    "gelu": "gelu",
    "gelu_python": "gelu",
    "gelu_new": gelu_tanh,
    "gelu_pytorch_tanh": gelu_tanh,
    "gelu_fast": gelu_tanh,
    "gelu_accurate": gelu_tanh,
    "tanh": "tanh",
}


def activation_name(activation):
    """Returns the name under which a config has an activation.

    Args:
        activation: callable.

    Raises:
        ValueError: configs have no name for it.

    Examples:
        >>> from keras_attn.pretrained.activations import activation_name
        >>> from keras_attn.layers.gelu_tanh import gelu_tanh
        >>> activation_name(gelu_tanh)
        'gelu_new'
    """
    for theirs, ours in ACTIVATIONS.items():
        if keras.activations.get(ours) is activation:
            return theirs
    known = ", ".join(
        sorted(
            {keras.activations.get(f).__name__ for f in ACTIVATIONS.values()}
        )
    )
    raise ValueError(
        f"`activation` must be one of {known} to be written. "
        f"Received: {keras.activations.serialize(activation)!r}"
    )
