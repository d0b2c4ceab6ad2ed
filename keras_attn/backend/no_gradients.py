"""Disables gradient recording."""

import contextlib

import keras


def no_gradients():
    """Returns a scope in which no gradients are recorded.

    Only PyTorch records them by default.

    Returns:
        Context manager.
    """
    if keras.backend.backend() == "torch":
        import torch

        return torch.no_grad()
    return contextlib.nullcontext()
