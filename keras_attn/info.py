"""Prints the versions that a bug report needs: `python -m keras_attn.info`."""

import importlib.metadata
import platform
from typing import Any

import keras

from keras_attn import backend
from keras_attn.version import __version__

# The packages of the backends and the extras that computations depend on.
_PACKAGES = (
    "numpy",
    "tensorflow",
    "jax",
    "torch",
    "tensorflow-text",
    "tokenizers",
    "sentencepiece",
    "safetensors",
    "matplotlib",
    "transformers",
    "keras-hub",
)


def information() -> dict[str, Any]:
    """Collects the versions of the library and of everything it depends on.

    Returns:
        Dict of str to str, in the order in which it is printed.
    """
    return {
        "keras-attn": __version__,
        "keras": keras.__version__,
        "backend": keras.config.backend(),
        "dtype policy": keras.config.dtype_policy().name,
        "python": f"{platform.python_implementation()} "
        f"{platform.python_version()}",
        "platform": platform.platform(),
        "devices": _devices(),
    } | {name: _version(name) for name in _PACKAGES}


def _devices():
    try:
        return ", ".join(backend.device_names())
    except RuntimeError as error:
        # A device that does not start is what some reports are about.
        return f"error: {' '.join(str(error).split())}"


def _version(name):
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"


if __name__ == "__main__":
    print(*(f"{k}: {v}" for k, v in information().items()), sep="\n")
