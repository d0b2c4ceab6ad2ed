"""The backends on which `make test` runs a test."""

import collections
import types

import pytest

from tests.conftest import ROOT, chosen

pytestmark = pytest.mark.one_backend

ALL = ["tensorflow", "jax", "torch"]


def item(file, name="test_a", **marks):
    """Returns what pytest collects: a test with marks, {name: arguments}."""
    marks = {k: types.SimpleNamespace(args=args) for k, args in marks.items()}
    return types.SimpleNamespace(
        path=ROOT / file,
        nodeid=f"{file}::{name}",
        get_closest_marker=marks.get,
    )


@pytest.mark.parametrize("mark", ["every_backend", "skipif"])
def test_all_backends(mark):
    assert chosen(item("tests/layers/test_a.py"), ALL) == ALL
    assert chosen(item("tests/test_a.py"), ALL) == ALL
    assert chosen(item("tests/models/test_a.py", **{mark: ()}), ALL) == ALL


def test_two_backends():
    others = collections.Counter()
    for number in range(100):
        test = item("tests/models/test_a.py", f"test_{number}")
        last, other = chosen(test, ALL)
        assert last == "torch"
        others[other] += 1
        assert chosen(test, ["jax", "torch"]) == ["jax", "torch"]
        assert chosen(test, ["jax"]) == ["jax"]
    assert min(others["tensorflow"], others["jax"]) > 30
    assert others.total() == 100


def test_one_backend():
    for file in "tests/layers/test_a.py", "tests/models/test_a.py":
        assert chosen(item(file, one_backend=()), ALL) == ["torch"]
        named = item(file, one_backend=("jax",))
        assert chosen(named, ALL) == ["jax"]
        assert chosen(named, ["tensorflow"]) == ["tensorflow"]
