"""The kernel that a layer requests with `flash_attention=False`."""

import keras
import numpy as np
from keras import layers
from keras.src import backend

import keras_attn
from keras_attn.layers import multi_head_attention as ours

print(f"keras {keras.__version__} on {keras.backend.backend()}")
x = np.ones((1, 4, 8), "float32")


def requested(kind, module, function, argument):
    """Returns the argument that a layer passes to the attention function."""
    original, seen = getattr(module, function), []

    def spy(*args, **kwargs):
        seen.append(kwargs[argument])
        return original(*args, **kwargs)

    setattr(module, function, spy)
    try:
        # Causal, so that no layer takes a special path.
        attention = kind(num_heads=2, key_dim=4, flash_attention=False)
        attention(x, x, use_causal_mask=True)
    finally:
        setattr(module, function, original)
    return seen[0]


flag = requested(
    layers.MultiHeadAttention,
    backend.nn,
    "dot_product_attention",
    "flash_attention",
)
print(
    "theirs: flash_attention=False is",
    f"passed on as {flag}{': the backend chooses' if flag is None else ''}",
)
kernel = requested(
    keras_attn.layers.MultiHeadAttention, ours, "attend_sanitized", "kernel"
)
print(f"ours:   flash_attention=False is the kernel {kernel!r}")
