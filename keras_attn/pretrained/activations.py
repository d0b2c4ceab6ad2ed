"""Names of activations in a `config.json`."""

from collections.abc import Callable
from typing import Any

import keras

from keras_attn.layers.gelu_tanh import gelu_tanh
from keras_attn.layers.quick_gelu import quick_gelu

# If a function has several names, the first one is written.
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
    "quick_gelu": quick_gelu,
    "tanh": "tanh",
}


def activation_name(activation: Callable[..., Any]) -> str:
    """Returns the name of an activation in a config.

    Args:
        activation: callable.

    Raises:
        ValueError: it has no name in configs.

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
        f"`activation` must be one of {known} to be saved. "
        f"Received: {keras.activations.serialize(activation)!r}"
    )
