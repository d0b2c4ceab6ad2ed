"""Calls of which nobody asks a gradient."""

import contextlib

import keras


def no_gradients():
    """Returns a scope in which nothing is kept for gradients.

    Only PyTorch keeps anything unless it is told not to.

    Returns:
        Context manager.
    """
    if keras.backend.backend() == "torch":
        import torch

        return torch.no_grad()
    return contextlib.nullcontext()
