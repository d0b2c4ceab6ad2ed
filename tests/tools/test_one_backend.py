"""Which backend runs a test that is marked `one_backend`."""

import types

import keras
import pytest

from tests import conftest

pytestmark = pytest.mark.one_backend

HERE = keras.backend.backend()
FIRST, LAST = sorted({"jax", "tensorflow", "torch"} - {HERE})


class Item:
    """What the hook reads of a test."""

    keywords = frozenset()

    def __init__(self, *names, marked=True):
        self._mark = pytest.mark.one_backend(*names).mark if marked else None

    def get_closest_marker(self, name):
        return self._mark


@pytest.mark.parametrize(
    "backends, item, runs",
    [
        ([FIRST, HERE], Item(marked=False), True),
        # The last one, or the one that is named.
        ([FIRST, HERE], Item(), True),
        ([HERE, LAST], Item(), False),
        ([HERE, LAST], Item(HERE), True),
        ([FIRST, HERE], Item(FIRST), False),
        # The backend that is named does not run, so the last one runs the test.
        ([FIRST, HERE], Item(LAST), True),
        ([HERE, FIRST], Item(LAST), False),
        ([HERE], Item(FIRST), True),
        ([HERE], Item(), True),
    ],
)
def test_every_test_runs_with_exactly_one(monkeypatch, backends, item, runs):
    monkeypatch.setenv("TEST_BACKENDS", " ".join(backends))
    left_out = []
    hook = types.SimpleNamespace(
        pytest_deselected=lambda items: left_out.extend(items)
    )
    items = [item]
    conftest.pytest_collection_modifyitems(
        types.SimpleNamespace(hook=hook), items
    )
    assert (items, left_out) == (([item], []) if runs else ([], [item]))
