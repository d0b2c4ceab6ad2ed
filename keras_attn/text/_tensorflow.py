"""TensorFlow for texts only: found late, and kept off other backends' GPU."""

import contextlib

import keras

_MISSING = (
    "keras_attn.text needs {name}, which is not installed: "
    "pip install keras-attn[text]"
)


def sentencepiece():
    """Returns the module `sentencepiece`.

    Raises:
        ImportError: it is not installed; the message says what to install.
    """
    try:
        import sentencepiece
    except ImportError as error:
        raise ImportError(_MISSING.format(name="sentencepiece")) from error
    return sentencepiece


def tensorflow():
    """Returns the module `tensorflow`, without GPUs on other backends.

    TensorFlow takes all the memory of each GPU that it sees, and texts need
    none: on JAX and PyTorch it is told to see none. The first caller does it,
    because it must come before TensorFlow's first tensor.

    Raises:
        ImportError: it is not installed; the message says what to install.
    """
    try:
        import tensorflow as tf
    except ImportError as error:
        raise ImportError(_MISSING.format(name="tensorflow")) from error
    others = keras.backend.backend() != "tensorflow"
    if others and tf.config.get_visible_devices("GPU"):
        # RuntimeError: the program has used TensorFlow's GPUs already, so
        # their memory is taken by its own choice.
        with contextlib.suppress(RuntimeError):
            tf.config.set_visible_devices([], "GPU")
    return tf


def tensorflow_text():
    """Returns the module `tensorflow_text`.

    Raises:
        ImportError: it is not installed; the message says what to install.
    """
    tensorflow()
    try:
        import tensorflow_text
    except ImportError as error:
        raise ImportError(_MISSING.format(name="tensorflow-text")) from error
    return tensorflow_text
