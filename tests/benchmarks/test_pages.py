"""The tables in the docs are those of their figures, and whole."""

import importlib

import pytest

from benchmarks.__main__ import DOCS, TABLES
from benchmarks.harness import report, table

PAGE = (DOCS.parent / "benchmarks.md").read_text("utf-8")
MEASURED = [name for name in TABLES if (DOCS / f"{name}.json").exists()]


@pytest.mark.parametrize("name", MEASURED)
def test_a_table_is_that_of_its_figures(name):
    result = report.read(DOCS / f"{name}.json")
    written = (DOCS / f"{name}.md").read_text("utf-8")
    assert written == table.markdown(result)
    assert not result["quick"] and not result["absent"]
    plan = importlib.import_module(f"benchmarks.{name}.plan")
    cases = [one["case"]["name"] for one in result["results"]]
    assert cases == [case["name"] for case in plan.CASES]
    for one in result["results"]:
        names = [entry["name"] for entry in one["contestants"]]
        assert names == [
            contestant.name
            for contestant in plan.CONTESTANTS
            if not contestant.cases or one["case"]["name"] in contestant.cases
        ]


@pytest.mark.parametrize("name", TABLES)
def test_what_was_measured_is_shown_and_nothing_else(name):
    shown = f'--8<-- "docs/benchmarks/{name}.md"' in PAGE
    assert shown is (name in MEASURED)
    assert (f"TABLE={name}" in PAGE) >= shown


def test_there_are_tables():
    assert len(MEASURED) >= 4
