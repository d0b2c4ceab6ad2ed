"""The tutorial on early attention: a quick run, its files, invalid input."""

import json

import keras
import numpy as np
import pytest
import word_lines
from first_forms_settings import Settings
from pair_table import PairTable

from tests.tutorials.programs import complaint, printed, runner

pytestmark = pytest.mark.one_backend("tensorflow")

run = runner("first_forms", Settings)


@pytest.fixture(scope="module")
def quick(tmp_path_factory):
    """The folder of a quick run, and its printed output."""
    folder = tmp_path_factory.mktemp("forms")
    return folder, printed(run, QUICK=1, OUT=folder)


def test_quick_run_prints_results_and_next_steps(quick):
    folder, said = quick
    results = json.loads((folder / "results.json").read_text("utf-8"))
    assert "64 training pairs, 16 test pairs" in said
    assert results["settings"]["held_out"] == "16"
    assert np.isfinite(results["losses"]["additive"]).all()
    assert [*results["lookup"]] == ["reinforce"]
    assert not any((folder / "backup").glob("*/*.npz"))
    assert f"MODEL={folder}" in said and "What to try next" in said


def test_saved_model_translates_a_file(quick, tmp_path, monkeypatch, capsys):
    folder, lines = quick[0], ["my red car", "", "two old trees"]
    path = tmp_path / "lines.txt"
    path.write_text("\n".join(lines), "utf-8")
    with pytest.raises(SystemExit) as leaving:
        run(monkeypatch, MODEL=folder, INPUT=path)
    assert leaving.value.code == 0
    said = capsys.readouterr().out
    model = keras.saving.load_model(folder / "model.keras", compile=False)
    table = PairTable.load(folder / "words.json")
    expected = word_lines.translate(model, table, lines)
    assert said == "".join(f"{text}\n" for text in expected)


@pytest.mark.parametrize(
    "values, answer",
    [
        ({"DATA": "nowhere.tsv"}, "no file nowhere.tsv"),
        ({"LONGEST": "2"}, "LONGEST must be at least 3"),
        ({"MODEL": "nowhere"}, "MODEL must be a folder with"),
    ],
)
def test_invalid_input_exits_with_one_line_and_status_2(
    values, answer, monkeypatch, capsys
):
    said = complaint(run, monkeypatch, capsys, **values)
    assert answer in said
