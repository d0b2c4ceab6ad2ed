"""The backends on which `make test` runs a test."""

import collections
import types

import keras
import pytest

from tests import conftest

pytestmark = pytest.mark.one_backend

ALL = ["tensorflow", "jax", "torch"]
HERE = keras.backend.backend()


class Item:
    """The part of a collected test that the hook reads.

    Args:
        file: str. Its file.
        name: str. Its name. Default "test_a".
        **marks: tuple of arguments of each mark.
    """

    keywords = frozenset()

    def __init__(self, file, name="test_a", **marks):
        self.path = conftest.ROOT / file
        self.nodeid = f"{file}::{name}"
        self._marks = {
            key: types.SimpleNamespace(args=args) for key, args in marks.items()
        }

    def get_closest_marker(self, name):
        return self._marks.get(name)


@pytest.mark.parametrize(
    "item",
    [
        Item("tests/backend/test_a.py"),
        Item("tests/layers/test_a.py", every_backend=()),
        Item("tests/models/test_a.py", every_backend=()),
        Item("tests/models/test_a.py", skipif=()),
    ],
)
def test_on_every_backend(item):
    assert conftest.chosen(item, ALL) == ALL


def test_some_cases_run_on_another_backend_in_turn():
    item = Item("tests/layers/test_a.py", every_backend=())
    found = [conftest.chosen(item, ALL, case) for case in range(16)]
    jax, tensorflow, torch = (
        ["jax", "torch"],
        ["tensorflow", "torch"],
        ["torch"],
    )
    assert found[:4] == [ALL, torch, torch, tensorflow]
    assert found[9] == jax and found[15] == tensorflow
    assert found.count(torch) == 12
    assert conftest.chosen(item, ["jax"], 2) == ["jax"]
    item = Item("tests/layers/test_a.py", skipif=())
    assert conftest.chosen(item, ALL, 1) == ALL


@pytest.mark.parametrize("folder", ["tests", "tests/layers", "tests/models"])
def test_on_the_last_backend_and_some_on_another(folder):
    others = collections.Counter()
    for number in range(200 * conftest.SAMPLED):
        item = Item(f"{folder}/test_a.py", f"test_{number}")
        last, *another = conftest.chosen(item, ALL)
        assert last == "torch" and len(another) < 2
        others.update(another)
        assert conftest.chosen(item, ["jax", "torch"]) == ["jax", "torch"]
        assert conftest.chosen(item, ["jax"]) == ["jax"]
    assert others.keys() == {"tensorflow", "jax"}
    assert all(80 < count < 120 for count in others.values())


@pytest.mark.parametrize("folder", ["layers", "models"])
@pytest.mark.parametrize(
    "named, backends, expected",
    [
        # The last backend, or the named one.
        ((), ALL, "torch"),
        ((), ["torch", "jax"], "jax"),
        ((), ["jax"], "jax"),
        (("jax",), ALL, "jax"),
        # The named backend does not run, so the last one runs the test.
        (("jax",), ["tensorflow", "torch"], "torch"),
        (("jax",), ["tensorflow"], "tensorflow"),
    ],
)
def test_on_one_backend(folder, named, backends, expected):
    item = Item(f"tests/{folder}/test_a.py", one_backend=named)
    assert conftest.chosen(item, backends) == [expected]


def test_tests_of_other_backends_are_deselected(monkeypatch):
    monkeypatch.setenv("TEST_BACKENDS", " ".join(ALL))
    monkeypatch.delenv("ALONE_SHARE", raising=False)
    items = [
        Item("tests/layers/test_a.py", one_backend=(name,)) for name in ALL
    ]
    here = items[ALL.index(HERE)]
    others = [item for item in items if item is not here]
    # The cases of a test are counted.
    cases = [
        Item("tests/layers/test_a.py", f"test_b[{n}]", every_backend=())
        for n in range(4)
    ]
    items += cases
    left_out = []
    hook = types.SimpleNamespace(
        pytest_deselected=lambda items: left_out.extend(items)
    )
    conftest.pytest_collection_modifyitems(
        types.SimpleNamespace(hook=hook), items
    )
    # The last of them runs on TensorFlow too.
    gone = {"tensorflow": cases[1:3], "jax": cases[1:], "torch": []}[HERE]
    assert items == [here, *(case for case in cases if case not in gone)]
    assert left_out == others + gone


def test_backends_that_are_alone_divide_the_tests():
    """Of a test marked `every_backend`, each runs the first case."""
    shares = "1/3", "2/3", "3/3"
    counts = collections.Counter()
    for number in range(300):
        item = Item("tests/test_a.py", f"test_{number}", one_backend=("jax",))
        (share,) = [s for s in shares if conftest.shared(item, s)]
        assert conftest.shared(item, "1/1")
        counts[share] += 1
    assert all(counts[share] > 30 for share in shares)
    assert counts["3/3"] > 170
    item = Item("tests/test_a.py", every_backend=())
    assert all(conftest.shared(item, share) for share in shares)
    assert sum(conftest.shared(item, share, 1) for share in shares) == 1


def test_a_share_is_deselected(monkeypatch):
    monkeypatch.setenv("TEST_BACKENDS", HERE)
    items = [Item("tests/test_a.py", f"test_{n}") for n in range(40)]
    hook = types.SimpleNamespace(pytest_deselected=lambda items: None)
    kept = []
    for share in "1/2", "2/2":
        monkeypatch.setenv("ALONE_SHARE", share)
        part = list(items)
        conftest.pytest_collection_modifyitems(
            types.SimpleNamespace(hook=hook), part
        )
        assert 0 < len(part) < 40
        kept += part
    assert {item.nodeid for item in kept} == {item.nodeid for item in items}
    assert len(kept) == 40
