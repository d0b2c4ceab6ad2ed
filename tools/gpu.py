"""Checks whether the current backend can see a GPU.

As a program (`KERAS_BACKEND=jax python -m tools.gpu`) it prints one line that
ends in "a GPU" or "no GPU".
"""

import keras


def gpu_seen():
    """Returns whether the current backend can see a GPU."""
    return _SEEN[keras.backend.backend()]()


def _tensorflow():
    import tensorflow as tf

    return bool(tf.config.list_physical_devices("GPU"))


def _jax():
    import jax

    return jax.default_backend() == "gpu"


def _torch():
    import torch

    return torch.cuda.is_available()


_SEEN = {"tensorflow": _tensorflow, "jax": _jax, "torch": _torch}

if __name__ == "__main__":
    print(f"{keras.backend.backend()} sees {'a' if gpu_seen() else 'no'} GPU")
