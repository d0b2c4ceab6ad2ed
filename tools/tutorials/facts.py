"""Backend, versions and machine of a tutorial run."""

import importlib.metadata
import os
import pathlib
import platform
import re

_PACKAGES = {"jax": "jax", "tensorflow": "tensorflow", "torch": "torch"}


def facts():
    """Returns backend, versions and machine, as plain data.

    Returns:
        Dict of `backend` (str), `versions` (dict from package to str), and
        `machine` (dict of `cpu` (str), `cores` (int) and `gpu` (bool)).
    """
    import keras

    import keras_attn
    from tools.gpu import gpu_seen

    backend = keras.backend.backend()
    package = _PACKAGES[backend]
    return {
        "backend": backend,
        "versions": {
            "keras_attn": keras_attn.__version__,
            "keras": keras.__version__,
            package: importlib.metadata.version(package),
            "python": platform.python_version(),
        },
        "machine": {"cpu": cpu(), "cores": cores(), "gpu": gpu_seen()},
    }


def cpu(info=pathlib.Path("/proc/cpuinfo")):
    """Returns the model of the CPU, or its architecture if unknown."""
    found = None
    if info.is_file():
        found = re.search(r"^model name\s*:\s*(.+)$", info.read_text(), re.M)
    name = found.group(1) if found else platform.machine()
    return re.sub(r"\s+", " ", re.sub(r"\((R|TM)\)", "", name)).strip()


def cores():
    """Returns the number of cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count()
