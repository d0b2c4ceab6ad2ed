"""State of the process's global random number generators."""

import random

import keras
import numpy as np

from keras_attn.typing import Nest

if keras.backend.backend() == "torch":
    import torch


def random_state() -> Nest:
    """Returns the state of the process's random number generators.

    These are Python's, NumPy's and, on the PyTorch backend, PyTorch's. They
    shuffle data, and unseeded dropout draws from PyTorch's. The state of a
    `keras.random.SeedGenerator` is in a layer's variables instead.

    Returns:
        Nest of dict, tuple, int, float, str, None and NumPy arrays.
    """
    state = {
        "python": random.getstate(),
        "numpy": np.random.get_state(legacy=False),  # noqa: NPY002 (Keras's)
    }
    if keras.backend.backend() == "torch":
        state["torch"] = torch.get_rng_state().numpy()
        # If CUDA was never used, its generators have drawn nothing.
        if torch.cuda.is_initialized():
            state["cuda"] = [
                device.numpy() for device in torch.cuda.get_rng_state_all()
            ]
    return state


def set_random_state(state: Nest) -> None:
    """Restores the generators from `random_state`.

    Args:
        state: as returned by `random_state`, on this backend or another.
            Generators that this backend does not have are skipped.
    """
    random.setstate(state["python"])
    np.random.set_state(state["numpy"])  # noqa: NPY002 (Keras's)
    if keras.backend.backend() == "torch" and "torch" in state:
        torch.set_rng_state(torch.from_numpy(state["torch"].copy()))
        if "cuda" in state and torch.cuda.is_available():
            torch.cuda.set_rng_state_all(
                [torch.from_numpy(device.copy()) for device in state["cuda"]]
            )
