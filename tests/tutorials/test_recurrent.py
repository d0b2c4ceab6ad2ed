"""The tutorial on recurrent translators: quick runs, invalid input."""

import json

import keras
import phrase_grammar
import pytest
import recurrent_settings
from translation import translate

from keras_attn.text import SubwordTokenizer
from tests.tutorials.programs import complaint, printed, runner

pytestmark = pytest.mark.one_backend("torch")

run = runner("recurrent", recurrent_settings.Settings)


@pytest.fixture(scope="module")
def quick(tmp_path_factory):
    """The folder of a quick run, and its printed output."""
    folder = tmp_path_factory.mktemp("recurrent")
    return folder, printed(run, QUICK=1, SAMPLING=1, OUT=folder)


def test_quick_run_prints_results_and_next_steps(quick):
    folder, printed = quick
    results = json.loads((folder / "results.json").read_text("utf-8"))
    (arm,) = results["arms"].values()
    assert f"{arm['parameters']:,} parameters" in printed
    counted = sum(row["sentences"] for row in arm["by_length"])
    assert counted == 16 and "16 test sentences" in printed
    for name in ("length.png", "alignments.png"):
        assert (folder / name).stat().st_size > 1000
        assert str(folder / name) in printed
    assert not (folder / "additive/backup").exists()
    assert len(results["behind a slip"]["sampling"]["slip"]) == 6
    assert "What to try next" in printed


def test_quick_run_does_not_overwrite_trained_models(monkeypatch):
    for name in recurrent_settings.Settings._fields:
        monkeypatch.delenv(name.upper(), raising=False)
    whole = recurrent_settings.read_settings()
    monkeypatch.setenv("QUICK", "1")
    assert recurrent_settings.read_settings().out != whole.out
    monkeypatch.setenv("OUT", "here")
    assert recurrent_settings.read_settings().out.name == "here"


def test_saved_model_translates_a_file(quick, tmp_path, monkeypatch, capsys):
    folder, lines = quick[0] / "additive", tmp_path / "lines.txt"
    lines.write_text("this cat is very large\n\nthe dog eats\n", "utf-8")
    with pytest.raises(SystemExit) as leaving:
        run(monkeypatch, MODEL=folder, INPUT=lines)
    assert leaving.value.code == 0
    said = capsys.readouterr().out
    model = keras.saving.load_model(folder / "model.keras", compile=False)
    tokenizer = SubwordTokenizer.load(folder / "tokenizer.model")
    expected = translate(
        model, tokenizer, ["this cat is very large", "", "the dog eats"]
    )
    # Not by line: an untrained model may generate line breaks.
    assert said == "".join(f"{text}\n" for text in expected)


def test_arms_and_user_corpus(tmp_path, monkeypatch, capsys):
    path, out = tmp_path / "pairs.tsv", tmp_path / "out"
    pairs = phrase_grammar.generate_pairs(400, seed=3)
    path.write_text("".join(f"{e}\t{s}\n" for e, s in pairs), "utf-8")
    run(monkeypatch, QUICK=1, ARMS="none,transformer", DATA=path, OUT=out)
    assert "none" in capsys.readouterr().out
    results = json.loads((out / "results.json").read_text("utf-8"))
    assert [*results["arms"]] == ["none", "transformer"]
    first, second = (arm["parameters"] for arm in results["arms"].values())
    assert abs(first / second - 1) < 0.04
    for name in results["arms"]:
        assert (out / name / "model.keras").is_file()
        assert (out / name / "tokenizer.model").is_file()


@pytest.mark.parametrize(
    "values, answer",
    [
        ({"ARMS": "none,best"}, "ARMS must name some of"),
        ({"DATA": "nowhere.tsv"}, "no file nowhere.tsv"),
        ({"MINUTES": "0"}, "MINUTES must be a positive number"),
        ({"MODEL": "nowhere"}, "MODEL must be a folder with"),
    ],
)
def test_invalid_input_exits_with_one_line_and_status_2(
    values, answer, monkeypatch, capsys
):
    said = complaint(run, monkeypatch, capsys, **values)
    assert answer in said
