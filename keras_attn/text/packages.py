"""Imports of the optional packages for text, at their first use."""

import contextlib
from typing import Any

import keras

_MISSING = (
    "keras_attn.text needs {name}, which is not installed: "
    "pip install keras-attn[{extra}]"
)


def _missing(name, extra="text"):
    return ImportError(_MISSING.format(name=name, extra=extra))


def sentencepiece() -> Any:
    """Returns the module `sentencepiece`.

    Raises:
        ImportError: the package is not installed.
    """
    try:
        import sentencepiece
    except ImportError as error:
        raise _missing("sentencepiece") from error
    return sentencepiece


def tokenizers() -> Any:
    """Returns the module `tokenizers`.

    Raises:
        ImportError: the package is not installed.
    """
    try:
        import tokenizers
    except ImportError as error:
        raise _missing("tokenizers") from error
    return tokenizers


def jinja2() -> Any:
    """Returns the module `jinja2`, with those of its sandbox and extensions.

    Raises:
        ImportError: the package is not installed.
    """
    try:
        import jinja2
        import jinja2.ext
        import jinja2.sandbox
    except ImportError as error:
        raise _missing("jinja2") from error
    return jinja2


def tensorflow() -> Any:
    """Returns the module `tensorflow`, without GPUs on other backends.

    TensorFlow reserves all the memory of each visible GPU
    (as of TensorFlow 2.21.0), and text processing needs none, so on JAX and
    PyTorch the GPUs are hidden from it. This must happen before TensorFlow
    creates its first tensor.

    Raises:
        ImportError: the package is not installed.
    """
    try:
        import tensorflow as tf
    except ImportError as error:
        raise _missing("tensorflow", "text-tensorflow") from error
    others = keras.backend.backend() != "tensorflow"
    if others and tf.config.get_visible_devices("GPU"):
        # RuntimeError: the program has already used TensorFlow's GPUs, so
        # their memory is reserved anyway.
        with contextlib.suppress(RuntimeError):
            tf.config.set_visible_devices([], "GPU")
    return tf


def tensorflow_text() -> Any:
    """Returns the module `tensorflow_text`.

    Raises:
        ImportError: the package is not installed.
    """
    tensorflow()
    try:
        import tensorflow_text
    except ImportError as error:
        raise _missing("tensorflow-text", "text-tensorflow") from error
    return tensorflow_text
