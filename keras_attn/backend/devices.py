"""The devices that the backend sees."""

import keras

if keras.backend.backend() == "torch":
    import torch
elif keras.backend.backend() == "jax":
    import jax
elif keras.backend.backend() == "tensorflow":
    import tensorflow as tf


def device_names() -> list[str]:
    """Lists the devices that the backend can compute on.

    Keras lists none on PyTorch (as of Keras 3.15.1).

    Returns:
        List of str, such as `"cpu"` or `"cuda:0 (NVIDIA H200)"`.

    Raises:
        RuntimeError: the backend cannot start a device that it has found.
    """
    return _NAMES[keras.backend.backend()]()


def _tensorflow():
    names = []
    for device in tf.config.list_physical_devices():
        details = tf.config.experimental.get_device_details(device)
        kind = details.get("device_name")
        name = device.name.removeprefix("/physical_device:").lower()
        names.append(f"{name} ({kind})" if kind else name)
    return names


def _jax():
    return [
        device.platform
        if device.platform == "cpu"
        else f"{device.platform}:{device.id} ({device.device_kind})"
        for device in jax.devices()
    ]


def _torch():
    names = ["cpu"] + ["mps"] * torch.backends.mps.is_available()
    for number in range(torch.cuda.device_count()):
        names.append(f"cuda:{number} ({torch.cuda.get_device_name(number)})")
    return names


_NAMES = {"tensorflow": _tensorflow, "jax": _jax, "torch": _torch}
