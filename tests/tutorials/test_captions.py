"""The captioning program: quick runs, saved models, invalid input."""

import json

import captions_settings
import pytest
from PIL import Image

from tests.tutorials.programs import complaint, printed, runner

pytestmark = pytest.mark.one_backend("torch")

run = runner("captions", captions_settings.Settings)


@pytest.fixture(scope="module")
def quick(tmp_path_factory):
    """The folder of a quick run, and its printed output."""
    folder = tmp_path_factory.mktemp("captions")
    return folder, printed(run, QUICK=1, SETTLE=1, OUT=folder)


def test_quick_run_prints_results_and_next_steps(quick):
    folder, said = quick
    results = json.loads((folder / "results.json").read_text("utf-8"))
    assert [*results["true"]] == ["soft", "hard, trained"]
    for parts in results["true"].values():
        assert [*parts] == ["kinds seen"]
        assert all(0 <= share <= 1 for share in parts["kinds seen"].values())
    assert len(results["losses"]["soft"]) == 2  # one of them settles
    assert results["told"]["own"] > 0
    assert not any((folder / "backup").iterdir())
    assert f"MODEL={folder}" in said and "What to try next" in said


def test_saved_model_describes_scenes(quick, monkeypatch, capsys):
    with pytest.raises(SystemExit) as leaving:
        run(monkeypatch, MODEL=quick[0])
    assert leaving.value.code == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(":")[0] for line in lines[:5]] == [
        f"scene {number}" for number in range(1, 6)
    ]
    assert (quick[0] / "described.png").stat().st_size > 1000


def test_user_pictures(tmp_path, monkeypatch, capsys):
    folder, out = tmp_path / "pictures", tmp_path / "out"
    folder.mkdir()
    lines = []
    for number in range(40):
        name = f"{number}.png"
        Image.new("RGB", (24, 12), (6 * number, 0, 0)).save(folder / name)
        lines.append(f"{name}\t{'Dark' if number < 20 else 'bright'} red.")
    (folder / "captions.tsv").write_text("\n".join(lines), "utf-8")
    run(monkeypatch, QUICK=1, HARD=0, DATA=folder, OUT=out)
    results = json.loads((out / "results.json").read_text("utf-8"))
    assert results["true"] == {"soft": {}} and results["told"]["own"] > 0
    capsys.readouterr()
    with pytest.raises(SystemExit):
        run(monkeypatch, MODEL=out, INPUT=folder / "3.png")
    (line, _) = capsys.readouterr().out.splitlines()
    words = set(line.removeprefix(f"{folder / '3.png'}: ").split())
    assert words <= {"dark", "bright", "red", ".", "<unknown>", "</s>"}


@pytest.mark.parametrize(
    "values, answer",
    [
        ({"DATA": "nowhere"}, "DATA must be a folder"),
        ({"SLIP": "1"}, "SLIP must be below 1"),
        ({"SIZE": "8"}, "SIZE must be at least 12 pixels"),
        ({"EPOCHS": "0"}, "EPOCHS must be a positive number"),
        ({"MODEL": "nowhere"}, "MODEL must be a folder with"),
    ],
)
def test_invalid_input_exits_with_one_line_and_status_2(
    values, answer, monkeypatch, capsys
):
    said = complaint(run, monkeypatch, capsys, **values)
    assert answer in said
