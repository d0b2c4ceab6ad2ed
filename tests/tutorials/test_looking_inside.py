"""The tutorial on model interpretation: a quick run, invalid input."""

import json

import pytest
from looking_inside_settings import Settings, is_default, read

from tests.tutorials.programs import complaint, printed, runner

pytestmark = pytest.mark.one_backend("torch")

run = runner("looking_inside", Settings)


@pytest.fixture(scope="module")
def quick(tmp_path_factory):
    """The folder of a quick run, and its printed output."""
    folder = tmp_path_factory.mktemp("looking_inside")
    return folder, printed(run, QUICK=1, OUT=folder)


def test_quick_run_prints_results_and_next_steps(quick):
    folder, said = quick
    results = json.loads((folder / "results.json").read_text("utf-8"))
    assert "0% padding" in said and "What to try next" in said
    assert [*results["it, 2 heads"]] == ["right", "layer 0"]
    for name in ("raw attention", "rollout", "gradient x input", "RISE"):
        for mean, half in results[f"areas, {name}"]:
            assert 0 <= mean <= 1 and 0 <= half < 1
    assert results["misleads"]["word"] in results["misleads"]["sentence"]
    assert len(results["heads"]) == 3
    for name in ("RISE", "looks", "chance"):
        assert len(results["canvases"][name]) == 2
    assert results["settings"]["heads"] == "2"
    assert (folder / "deletion.png").stat().st_size > 1000
    assert str(folder / "results.json") in said


def test_heads_are_a_standalone_page(quick):
    page = (quick[0] / "attention.html").read_text("utf-8")
    assert page.startswith("<!doctype html>")
    assert "the old house is near the river" in page
    assert "decoder_block_0/cross_attention" in page
    assert "http" not in page and len(page) < 300_000


@pytest.mark.parametrize(
    "values, answer",
    [
        ({"HEADS": "3"}, "HEADS must be numbers that divide 64"),
        ({"HEADS": "two"}, "HEADS must be numbers that divide 64"),
        ({"LOOKS": "1"}, "LOOKS must be at least 2"),
        ({"ROWS": "9"}, "ROWS must be at least 64"),
        ({"EXAMPLES": "1"}, "EXAMPLES must be at least 2"),
        ({"MASKS": "0"}, "MASKS must be a positive number"),
    ],
)
def test_invalid_input_exits_with_one_line_and_status_2(
    values, answer, monkeypatch, capsys
):
    assert answer in complaint(run, monkeypatch, capsys, **values)


def test_assertions_apply_to_default_settings_only():
    assert is_default(read({}))
    assert is_default(read({"SENTENCE": "a cat", "OUT": "x"}))
    assert not is_default(read({"QUICK": "1"}))
    assert not is_default(read({"PASSES": "3"}))
