"""Deprecated names work, warn once, and do not outlive their last version."""

import inspect
import sys
import types
import warnings

import keras
import numpy as np
import pytest

import keras_attn
from keras_attn import deprecation
from keras_attn.deprecation import (
    Deprecation,
    overdue,
    renamed_arguments,
    renamed_objects,
)


@pytest.fixture(autouse=True)
def fresh(monkeypatch):
    """Forgets deprecations and warnings of other tests."""
    monkeypatch.setattr(deprecation, "DEPRECATIONS", [])
    monkeypatch.setattr(deprecation, "_warned", set())


def warned(call):
    """Returns the result of a call and the warnings it raised."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = call()
    return result, caught


def search_with(**names):
    @renamed_arguments("0.2", "0.3", **names)
    def search(inputs, num_beams=4, *, penalty=0.0):
        return inputs, num_beams, penalty

    return search


def test_a_renamed_argument_warns_once():
    search = search_with(width="num_beams")
    result, caught = warned(lambda: search(1, width=2))
    assert result == (1, 2, 0.0)
    (warning,) = caught
    assert warning.category is FutureWarning
    # The line of the caller, not one of the decorator.
    assert warning.filename == __file__
    message = str(warning.message)
    for part in ("`width`", "search", "0.2", "0.3", "Use `num_beams`"):
        assert part in message
    result, caught = warned(lambda: search(1, width=3))
    assert result == (1, 3, 0.0)
    assert caught == []


def test_each_name_of_each_function_warns():
    first = search_with(width="num_beams", alpha="penalty")

    @renamed_arguments("0.2", "0.3", width="size")
    def second(size):
        return size

    result, caught = warned(
        lambda: (first(1, width=2, alpha=3), second(width=4))
    )
    assert result == ((1, 2, 3), 4)
    assert len(caught) == 3


def test_the_new_name_does_not_warn():
    search = search_with(width="num_beams")
    result, caught = warned(lambda: (search(1, 2), search(1, num_beams=3)))
    assert result == ((1, 2, 0.0), (1, 3, 0.0))
    assert caught == []


@pytest.mark.parametrize(
    "arguments, keywords",
    [((1,), {"num_beams": 2, "width": 3}), ((1, 2), {"width": 3})],
)
def test_both_names_raise(arguments, keywords):
    search = search_with(width="num_beams")
    with pytest.raises(TypeError, match="`num_beams` must be given once"):
        search(*arguments, **keywords)


def test_a_filter_makes_every_call_an_error():
    search = search_with(width="num_beams")
    for _ in range(2):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            with pytest.raises(FutureWarning):
                search(1, width=2)


def test_an_unknown_new_name_raises():
    with pytest.raises(ValueError, match="Received: beams"):
        search_with(width="beams")


def test_the_signature_stays():
    search = search_with(width="num_beams")
    names = list(inspect.signature(search).parameters)
    assert names == ["inputs", "num_beams", "penalty"]
    assert inspect.getfullargspec(search).args == ["inputs", "num_beams"]


@keras.saving.register_keras_serializable(package="test_deprecation")
class Scaled(keras.layers.Layer):
    @renamed_arguments("0.2", "0.3", scale="factor")
    def __init__(self, factor=1.0, **kwargs):
        super().__init__(**kwargs)
        self.factor = factor

    @renamed_arguments("0.2", "0.3", bias="shift")
    def __call__(self, inputs, shift=0.0):
        return super().__call__(inputs, shift=shift)

    def call(self, inputs, shift=0.0):
        return inputs * self.factor + shift

    def get_config(self):
        return super().get_config() | {"factor": self.factor}


@pytest.mark.every_backend
def test_a_layer_takes_old_names_and_old_configs():
    x = np.ones((1, 2), "float32")
    layer, caught = warned(lambda: Scaled(scale=3.0))
    assert len(caught) == 1
    y, caught = warned(lambda: layer(x, bias=1.0))
    assert len(caught) == 1
    np.testing.assert_array_equal(keras.ops.convert_to_numpy(y), x * 4)
    config = keras.saving.serialize_keras_object(layer)
    config["config"]["scale"] = config["config"].pop("factor")
    again, caught = warned(
        lambda: keras.saving.deserialize_keras_object(config)
    )
    assert again.factor == 3.0
    # This process has already warned.
    assert caught == []


def test_a_renamed_object_warns_once(monkeypatch):
    module = types.ModuleType("renaming")
    module.BeamSearch = object()
    module.__getattr__ = renamed_objects(
        "renaming", "0.2", "0.3", Search="BeamSearch"
    )
    monkeypatch.setitem(sys.modules, "renaming", module)
    found, caught = warned(lambda: module.Search)
    assert found is module.BeamSearch
    (warning,) = caught
    assert warning.filename == __file__
    assert "Use `BeamSearch`" in str(warning.message)
    found, caught = warned(lambda: module.Search)
    assert found is module.BeamSearch
    assert caught == []
    with pytest.raises(AttributeError, match="'tea'"):
        _ = module.tea


def test_a_name_is_overdue_in_the_version_that_removes_it():
    search_with(width="num_beams")
    (found,) = overdue("0.3.0")
    assert found[1:] == ("width", "0.2", "0.3")
    assert overdue("0.10.0") == [found]
    assert overdue("0.2.9") == []


def test_no_name_is_overdue(monkeypatch):
    monkeypatch.undo()
    # An import of everything, since modules deprecate when they are imported.
    assert all(hasattr(keras_attn, name) for name in keras_attn.__all__)
    ours = [
        found
        for found in overdue(keras_attn.__version__)
        if found.owner.startswith("keras_attn.")
    ]
    assert ours == []
    assert all(isinstance(d, Deprecation) for d in deprecation.DEPRECATIONS)
