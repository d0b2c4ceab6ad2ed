"""The GPU of a run: its name, its memory, and waiting for it."""

import subprocess
import sys


def gpu():
    """Returns the name and the driver of the first GPU, or None.

    Returns:
        Dict of `gpu` and `driver`, str.
    """
    command = ["nvidia-smi", "--query-gpu=name,driver_version"]
    try:
        output = subprocess.run(
            [*command, "--format=csv,noheader"],
            check=True,
            capture_output=True,
            text=True,
        ).stdout
    except (OSError, subprocess.CalledProcessError):
        return None
    name, driver = output.splitlines()[0].split(", ")
    return {"gpu": name, "driver": driver}


def torch_device():
    """Returns the device that Keras uses on PyTorch: `cuda` or `cpu`."""
    import torch

    return "cuda" if torch.cuda.is_available() else "cpu"


def synchronize(results):
    """Waits until the tensors of the current backend are computed."""
    if "jax" in sys.modules:
        sys.modules["jax"].block_until_ready(results)
    if "torch" in sys.modules and torch_device() == "cuda":
        sys.modules["torch"].cuda.synchronize()


def peak_mib():
    """Returns the peak of PyTorch's GPU memory since the reset, in MiB.

    Elsewhere it is None. JAX has no reset, and its peak would include the
    earlier cases of the process.
    """
    torch = sys.modules.get("torch")
    if torch is None or not torch.cuda.is_initialized():
        return None
    return torch.cuda.max_memory_allocated() / (1 << 20)


def forget_peak():
    """Resets `peak_mib` to the memory in use now."""
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_initialized():
        torch.cuda.reset_peak_memory_stats()
