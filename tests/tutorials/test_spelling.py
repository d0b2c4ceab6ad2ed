"""The spelling correction program: a quick run, its files, other data."""

import json
import random

import pytest
import spelling_settings
from spelling_noise import misspell
from spelling_words import split_words

from tests.tutorials.programs import complaint, printed, runner

pytestmark = pytest.mark.one_backend("tensorflow")

run = runner("spelling", spelling_settings.Settings)


@pytest.fixture(scope="module")
def listed(tmp_path_factory):
    """The folder of a quick run on a list, and its printed output."""
    folder = tmp_path_factory.mktemp("spelling")
    draw = random.Random(3)
    words = [word for word in split_words()[0] if 4 < len(word) < 9][:400]
    lines = [f"{misspell(word, draw)}->{word}" for word in words]
    (folder / "list.txt").write_text("\n".join(lines), "utf-8")
    return folder, printed(run, QUICK=1, DATA=folder / "list.txt", OUT=folder)


def test_run_on_a_list_prints_results_and_next_steps(listed):
    folder, said = listed
    results = json.loads((folder / "results.json").read_text("utf-8"))
    for name, score in results["scores"].items():
        assert f"misspellings, {name}" in said
        assert score["copying"] == 0
        assert 0 <= score["recall"]["1"] <= score["recall"]["2"] <= 1
        assert 0.3 < score["dictionary"] <= 1
    for name in ("model.keras", "letters.json", "attention.png"):
        assert (folder / name).stat().st_size > 20
    assert not (folder / "backup").exists()
    assert "What to try next" in said


def test_saved_model_corrects_a_file_and_standard_input(
    listed, tmp_path, monkeypatch, capsys
):
    folder, _ = listed
    lines = tmp_path / "lines.txt"
    lines.write_text("teh House\n\n12 + 3\n", "utf-8")
    with pytest.raises(SystemExit) as leaving:
        run(monkeypatch, MODEL=folder, INPUT=lines, SURE=1, BEAMS=2)
    assert leaving.value.code == 0
    from_file = capsys.readouterr().out
    # Below this threshold lines are unchanged and suggestions follow them.
    kept = [x for x in from_file.splitlines() if not x.startswith("  ")]
    assert kept == ["teh House", "", "12 + 3"]
    with lines.open(encoding="utf-8") as keyboard, pytest.raises(SystemExit):
        monkeypatch.setattr("sys.stdin", keyboard)
        run(monkeypatch, MODEL=folder, SURE=1, BEAMS=2)
    typed = capsys.readouterr().out.splitlines()
    assert typed == [line for line in from_file.splitlines() if line]


@pytest.mark.parametrize(
    "values, answer",
    [
        ({"DATA": "no.txt"}, "no.txt"),
        ({"EPOCHS": "0"}, "EPOCHS must be a positive number"),
        ({"MODEL": "nowhere"}, "MODEL must be a folder with"),
    ],
)
def test_invalid_input_exits_with_one_line_and_status_2(
    values, answer, monkeypatch, capsys
):
    said = complaint(run, monkeypatch, capsys, **values)
    assert answer in said


def test_too_short_list_is_an_error(tmp_path, monkeypatch, capsys):
    (tmp_path / "list.txt").write_text("teh->the\n", "utf-8")
    with pytest.raises(SystemExit):
        run(monkeypatch, DATA=tmp_path / "list.txt")
    assert "misspellings of enough words" in capsys.readouterr().err
