"""The random numbers that no layer keeps: those of the whole process."""

import random

import keras
import numpy as np

if keras.backend.backend() == "torch":
    import torch


def random_state():
    """Returns the state of the process's random number generators.

    They are Python's, NumPy's, and PyTorch's own where it is the backend: data
    are shuffled with them, and unseeded dropout draws from PyTorch's. Layers
    keep the state of a `keras.random.SeedGenerator` in their variables.

    Returns:
        Nest of dict, tuple, int, float, str, None and NumPy arrays.
    """
    state = {
        "python": random.getstate(),
        "numpy": np.random.get_state(legacy=False),  # noqa: NPY002 (Keras's)
    }
    if keras.backend.backend() == "torch":
        state["torch"] = torch.get_rng_state().numpy()
        # Nothing was drawn on a device that was never used.
        if torch.cuda.is_initialized():
            state["cuda"] = [
                device.numpy() for device in torch.cuda.get_rng_state_all()
            ]
    return state


def set_random_state(state):
    """Sets the generators to what `random_state` returned.

    Args:
        state: as returned, on this backend or another: what only the other has
            is left out.
    """
    random.setstate(state["python"])
    np.random.set_state(state["numpy"])  # noqa: NPY002 (Keras's)
    if keras.backend.backend() == "torch" and "torch" in state:
        torch.set_rng_state(torch.from_numpy(state["torch"].copy()))
        if "cuda" in state and torch.cuda.is_available():
            torch.cuda.set_rng_state_all(
                [torch.from_numpy(device.copy()) for device in state["cuda"]]
            )
