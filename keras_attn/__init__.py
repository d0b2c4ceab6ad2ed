"""Attention for Keras 3, on TensorFlow, JAX and PyTorch."""

# The layers come first: they re-export the blocks, which are made of them.
from keras_attn import layers  # isort: skip
from keras_attn import (
    blocks,
    cache,
    decoding,
    explain,
    models,
    ops,
    pretrained,
    text,
    training,
)
from keras_attn.explain import doctor

__version__ = "0.1.0"

__all__ = [
    "blocks",
    "cache",
    "decoding",
    "doctor",
    "explain",
    "layers",
    "models",
    "ops",
    "pretrained",
    "text",
    "training",
]
