"""The benchmark tables in the docs match their JSON files and are complete."""

import importlib

import pytest
from PIL import Image

from benchmarks.__main__ import DOCS, TABLES
from benchmarks.harness import picture, report, table

PAGE = (DOCS.parent / "benchmarks.md").read_text("utf-8")
MEASURED = [name for name in TABLES if (DOCS / f"{name}.json").exists()]


@pytest.mark.parametrize("name", MEASURED)
def test_table_matches_its_results(name):
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


@pytest.mark.parametrize("name", MEASURED)
def test_picture_matches_its_results(name):
    result = report.read(DOCS / f"{name}.json")
    with Image.open(DOCS / f"{name}.png") as drawn:
        assert drawn.text["Description"] == picture.fingerprint(result)
    result["results"][0]["contestants"][0]["median_seconds"] += 1
    assert drawn.text["Description"] != picture.fingerprint(result)


@pytest.mark.parametrize("name", MEASURED)
def test_picture_shows_every_result(name):
    results = report.read(DOCS / f"{name}.json")["results"]
    panels = picture.draw({"results": results}).axes
    if "column" not in results[0]["case"]:
        shown = [bar.get_width() for p in panels for bar in p.patches]
        assert shown == [
            entry["tokens_per_second"]
            for one in results
            for entry in one["contestants"]
        ]
        return
    shown = [
        x
        for panel in panels[::2]
        for line in panel.lines[1:]
        for x in line.get_xdata()
    ]
    ratios = [
        entry["ratio"]
        for one in results
        for entry in one["contestants"]
        if "ratio" in entry
    ]
    assert ratios
    assert sorted(shown) == sorted(ratios)


def test_memory_ratios_ignore_small_peers():
    own = {"name": "own", "against": "peer", "base_mib": 50, "peak_mib": 100}
    peer = {"name": "peer", "base_mib": 100, "peak_mib": 300}
    assert picture.times_as_small(own, [own, peer]) == 4
    assert picture.times_as_small(peer, [own, peer]) is None
    assert picture.times_as_small(own, [own, {**peer, "peak_mib": 199}]) is None


@pytest.mark.parametrize("name", TABLES)
def test_page_shows_exactly_the_measured_tables(name):
    shown = f'--8<-- "docs/benchmarks/{name}.md"' in PAGE
    assert shown is (name in MEASURED)
    assert (f"TABLE={name}" in PAGE) >= shown
    assert (f"](benchmarks/{name}.png)" in PAGE) is shown


def test_tables_exist():
    assert len(MEASURED) >= 4
