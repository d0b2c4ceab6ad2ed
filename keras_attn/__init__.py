"""Attention layers and Transformer models for Keras 3."""

# Import `layers` first: it re-exports the blocks, which import its modules.
from keras_attn import layers  # isort: skip
from keras_attn import (
    blocks,
    cache,
    datasets,
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
    "datasets",
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
