"""docs/decisions/names.md lists every public name, argument and field."""

import importlib
import inspect
import pathlib
import re

import pytest

import keras_attn
from tests.helpers.public_api import (
    PACKAGES,
    callables,
    parameters,
    public_objects,
)

PAGE = pathlib.Path(__file__).parents[1] / "docs" / "decisions" / "names.md"


def listed(title):
    """Names in the first column of the table under a heading."""
    text = PAGE.read_text(encoding="utf-8")
    table = text.partition(f"## {title}\n")[2].partition("\n## ")[0]
    return re.findall(r"^\| `([^`]+)` \|", table, re.MULTILINE)


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
