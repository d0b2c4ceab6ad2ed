"""Attention layers and Transformer models for Keras 3."""

import importlib
from typing import TYPE_CHECKING, Any

# Import `layers` first: it re-exports the blocks, which import its modules.
from keras_attn import layers  # isort: skip
from keras_attn import blocks, cache, decoding, models, ops, training
from keras_attn.version import __version__ as __version__

if TYPE_CHECKING:
    from keras_attn import datasets, explain, pretrained, testing, text
    from keras_attn.explain.doctor import doctor

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
    "testing",
    "text",
    "training",
]

# Imported when they are first used: half of the modules, and no class that
# Keras needs to load a file.
_LAZY = {
    "datasets": "keras_attn.datasets",
    "doctor": "keras_attn.explain",
    "explain": "keras_attn.explain",
    "pretrained": "keras_attn.pretrained",
    "testing": "keras_attn.testing",
    "text": "keras_attn.text",
}


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = importlib.import_module(_LAZY[name])
    value = module.doctor if name == "doctor" else module
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(globals().keys() | _LAZY)
