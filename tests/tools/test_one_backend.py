"""The backend that runs a test marked `one_backend`."""

import types

import keras
import pytest

from tests import conftest

pytestmark = pytest.mark.one_backend

HERE = keras.backend.backend()
FIRST, LAST = sorted({"jax", "tensorflow", "torch"} - {HERE})


class Item:
    """The part of a test item that the hook reads."""

    keywords = frozenset()

    def __init__(self, *names, marked=True):
        self._mark = pytest.mark.one_backend(*names).mark if marked else None

    def get_closest_marker(self, name):
        return self._mark


@pytest.mark.parametrize(
    "backends, item, runs",
    [
        ([FIRST, HERE], Item(marked=False), True),
        # The last backend, or the named one.
        ([FIRST, HERE], Item(), True),
        ([HERE, LAST], Item(), False),
        ([HERE, LAST], Item(HERE), True),
        ([FIRST, HERE], Item(FIRST), False),
        # The named backend does not run, so the last one runs the test.
        ([FIRST, HERE], Item(LAST), True),
        ([HERE, FIRST], Item(LAST), False),
        ([HERE], Item(FIRST), True),
        ([HERE], Item(), True),
    ],
)
def test_each_test_runs_with_exactly_one_backend(
    monkeypatch, backends, item, runs
):
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
