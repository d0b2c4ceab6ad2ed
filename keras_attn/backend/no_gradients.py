"""Disables gradient recording."""

import contextlib
from typing import Any

import keras


def no_gradients() -> Any:
    """Returns a scope in which no gradients are recorded.

    Only PyTorch records them by default.

    Returns:
        Context manager.
    """
    if keras.backend.backend() == "torch":
        import torch

        return torch.no_grad()
    return contextlib.nullcontext()
