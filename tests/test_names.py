"""docs/decisions/names.md lists every public name, argument and field."""

import importlib
import inspect
import pathlib
import re

import pytest

import keras_attn

PAGE = pathlib.Path(__file__).parents[1] / "docs" / "decisions" / "names.md"
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


def listed(title):
    """Names in the first column of the table under a heading."""
    text = PAGE.read_text(encoding="utf-8")
    table = text.partition(f"## {title}\n")[2].partition("\n## ")[0]
    return re.findall(r"^\| `([^`]+)` \|", table, re.MULTILINE)


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
    """Names of the arguments of a callable."""
    try:
        found = inspect.signature(value).parameters
    except ValueError:  # A class of Keras without a signature.
        return set()
    return found.keys() - {"self", "cls", "args", "kwargs"}


def test_the_page_lists_every_public_name():
    assert listed("Public names") == list(dict.fromkeys(listed("Public names")))
    assert set(listed("Public names")) == public_objects().keys()


def test_the_page_lists_every_argument_and_field():
    used = {
        name
        for value in public_objects().values()
        for function in callables(value)
        for name in parameters(function)
    }
    assert set(listed("Arguments and fields")) == used


def test_a_package_exports_nothing_but_its_public_names():
    for package in PACKAGES:
        module = importlib.import_module(f"keras_attn.{package}")
        names = {
            name
            for name, value in vars(module).items()
            if not name.startswith("_") and not inspect.ismodule(value)
        }
        assert names == set(module.__all__)


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda: keras_attn.decoding.BeamSearch(width=4), TypeError),
        (lambda: keras_attn.decoding.Sampling(num_samples=2), TypeError),
        (lambda: keras_attn.blocks.EncoderBlock(2, 8), TypeError),
        # Keras raises ValueError for arguments that no layer has.
        (lambda: keras_attn.layers.RotaryPosition(base=1e4), ValueError),
    ],
)
def test_old_keywords_raise(call, error):
    with pytest.raises(error):
        call()
