"""The public names, their methods and arguments."""

import importlib
import inspect

import keras_attn

PACKAGES = [name for name in keras_attn.__all__ if name != "doctor"]
# Methods of Keras's own protocol, whose names are not ours to choose.
OF_KERAS = {
    "build",
    "compute_mask",
    "compute_output_shape",
    "compute_output_spec",
    "from_config",
    "get_config",
    "set_model",
    "set_params",
}


def public_objects():
    """Dict of `package.name` to every object in an `__all__`."""
    found = {}
    for package in PACKAGES:
        module = importlib.import_module(f"keras_attn.{package}")
        for name in module.__all__:
            found[f"{package}.{name}"] = getattr(module, name)
    return found


def callables(value):
    """A function, or a class and its public methods."""
    yield value
    if not inspect.isclass(value):
        return
    for name, method in vars(value).items():
        if isinstance(method, classmethod | staticmethod):
            method = method.__func__
        public = name == "__call__" or not name.startswith("_")
        if public and inspect.isfunction(method) and name not in OF_KERAS:
            yield method


def parameters(value):
    """Names of the arguments of a callable; a constant has none."""
    if not callable(value):
        return set()
    try:
        found = inspect.signature(value).parameters
    except ValueError:  # A class of Keras without a signature.
        return set()
    return found.keys() - {"self", "cls", "args", "kwargs"}
