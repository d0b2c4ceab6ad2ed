"""Contestants of each case, and their rows in a table."""

import types

import keras
import pytest

from benchmarks.harness import race, report, table
from benchmarks.harness.contestant import Contestant

pytestmark = pytest.mark.one_backend

_BACKEND = keras.backend.backend()
EVERYWHERE = Contestant(
    "everywhere", _BACKEND, "tests.benchmarks.counting", {"size": 4}
)
ONCE = EVERYWHERE._replace(name="once", cases=("second",), against="everywhere")
PLAN = types.SimpleNamespace(
    TITLE="A table",
    NOTES=[],
    STEPS=2,
    CONTESTANTS=[ONCE, EVERYWHERE],
    PACKAGES=("pytest",),
    flops=lambda case: 1,
    tokens=lambda case: 1,
)


@pytest.fixture(scope="module", params=["one process", "two"])
def result(request):
    together = {"process": "all"} if request.param == "one process" else {}
    cases = [
        {"name": name, "title": "Both", "column": name, **together}
        for name in ("first", "second")
    ]
    results = race.run(PLAN, cases, PLAN.CONTESTANTS, rounds=2)
    return report.complete(results, PLAN, "a_table", quick=True)


def test_contestant_runs_its_cases_only(result):
    names = [
        [entry["name"] for entry in case["contestants"]]
        for case in result["results"]
    ]
    assert names == [["everywhere"], ["once", "everywhere"]]
    assert "ratio" in result["results"][1]["contestants"][0]


def test_grid_cells_of_other_cases_are_empty(result):
    lines = table.markdown(result).splitlines()
    (once,) = (line for line in lines if line.startswith("| once |"))
    (other,) = (line for line in lines if line.startswith("| everywhere |"))
    empty, shown = (cell.strip() for cell in once.split("|")[2:4])
    assert not empty and shown.startswith("**")
    assert all(cell.strip() for cell in other.split("|")[1:4])


def test_versions_include_packages_of_the_plan(result):
    assert result["versions"]["pytest"] == pytest.__version__
