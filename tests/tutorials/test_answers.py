"""The question answering program: quick runs, saved models, invalid input."""

import json

import answers_settings
import pytest

from tests.tutorials.programs import complaint, printed, runner

pytestmark = pytest.mark.one_backend("jax")

run = runner("answers", answers_settings.Settings)


@pytest.fixture(scope="module")
def turns(tmp_path_factory):
    """Two files of booking dialogues, for training and for testing."""
    folder = tmp_path_factory.mktemp("turns")
    paths = []
    for name, count in (("train", 40), ("test", 10)):
        content = []
        for number in range(count):
            text = f"a table for {number} at {number % 12} pm {name}"
            begin = text.index(str(number))
            end = begin + len(str(number))
            span = {"startIndex": begin, "endIndex": end}
            content.append(
                {
                    "userInput": {"text": text},
                    "labels": [{"slot": "people", "valueSpan": span}],
                }
            )
        paths.append(folder / f"{name}.json")
        paths[-1].write_text(json.dumps(content), "utf-8")
    return ",".join(map(str, paths))


@pytest.fixture(scope="module")
def answered(turns, tmp_path_factory):
    """The folder of a quick run on these files, and its printed output."""
    out = tmp_path_factory.mktemp("answers")

    def run_to_its_end(monkeypatch, **values):
        with pytest.raises(SystemExit) as leaving:
            run(monkeypatch, **values)
        assert leaving.value.code == 0

    return out, printed(run_to_its_end, QUICK=1, DATA=turns, OUT=out)


def test_run_on_files_scores_and_saves(answered):
    out, said = answered
    results = json.loads((out / "results.json").read_text("utf-8"))
    for way in ("known answer", "the model, test", "test, this one"):
        for value in results["test"][way].values():
            assert 0 <= value <= 1
    assert results["longest"] == 1
    for name in ("model.keras", "words.json", "strips.png", "attention.png"):
        assert (out / name).stat().st_size > 20
    assert not (out / "backup").exists()
    assert f"MODEL={out}" in said


def test_saved_model_answers_a_file_and_standard_input(
    answered, tmp_path, monkeypatch, capsys
):
    lines = tmp_path / "lines.txt"
    lines.write_text("people?\ta table for 7\ntime\tat 8 pm\n", "utf-8")
    with pytest.raises(SystemExit) as leaving:
        run(monkeypatch, MODEL=answered[0], INPUT=lines)
    assert leaving.value.code == 0
    from_file = capsys.readouterr().out
    assert len(from_file.splitlines()) == 2
    with lines.open(encoding="utf-8") as keyboard, pytest.raises(SystemExit):
        monkeypatch.setattr("sys.stdin", keyboard)
        run(monkeypatch, MODEL=answered[0])
    assert capsys.readouterr().out == from_file


def test_repair_model_alone(tmp_path, monkeypatch, capsys):
    paths = []
    for name, count in (("train", 40), ("test", 5)):
        pairs = {
            str(number): {
                "disfluent": f"who no what is {name} {number} called",
                "original": f"what is {name} {number} called",
            }
            for number in range(count)
        }
        paths.append(tmp_path / f"{name}.json")
        paths[-1].write_text(json.dumps(pairs), "utf-8")
    data, out = ",".join(map(str, paths)), tmp_path / "out"
    with pytest.raises(SystemExit) as leaving:
        run(monkeypatch, QUICK=1, TASK="repair", DATA=data, OUT=out)
    assert leaving.value.code == 0
    results = json.loads((out / "results-repair.json").read_text("utf-8"))
    assert results["test"]["copied"]["exact match"] == 0
    assert results["test"]["behind the cue"]["exact match"] == 1
    assert not (out / "backup-repair").exists()
    lines = tmp_path / "lines.txt"
    lines.write_text("who no what is it called\n", "utf-8")
    capsys.readouterr()
    with pytest.raises(SystemExit):
        run(monkeypatch, TASK="repair", MODEL=out, INPUT=lines)
    assert len(capsys.readouterr().out.splitlines()) == 1


@pytest.mark.parametrize(
    "values, answer",
    [
        ({"DATA": "one.json"}, "DATA must be two files"),
        ({"DATA": "no.json,none.json"}, "no.json"),
        ({"TASK": "guess"}, "TASK must be one of answer, repair"),
        ({"DROPOUT": "1"}, "DROPOUT and UNKNOWN must lie in"),
        ({"MODEL": "nowhere"}, "MODEL must be a folder with"),
    ],
)
def test_invalid_input_exits_with_one_line_and_status_2(
    values, answer, monkeypatch, capsys
):
    said = complaint(run, monkeypatch, capsys, **values)
    assert answer in said
