"""The translation program: quick runs, its files, invalid input."""

import json

import keras
import numpy as np
import phrase_grammar
import pytest
from blank_translations import count_blanks
from small_letters import fold, known_capitals
from translate_settings import Settings, read_settings
from translation import bleu

from keras_attn.layers import MultiHeadAttention
from keras_attn.text import SubwordTokenizer
from keras_attn.training import SequenceCrossentropy, WarmupSchedule
from tests.tutorials.programs import complaint, printed, runner

pytestmark = pytest.mark.one_backend("torch")

run = runner("translate", Settings)


@pytest.fixture(scope="module")
def quick(tmp_path_factory):
    """The folder of a quick run, and its printed output."""
    folder = tmp_path_factory.mktemp("translate")
    return folder, printed(run, QUICK=1, OUT=folder)


def test_quick_run_prints_results_and_next_steps(quick):
    folder, printed = quick
    assert any(line.startswith("BLEU ") for line in printed.splitlines())
    float(printed.split("\nBLEU ")[1].split()[0])
    for name in ("model.keras", "training.png", "attention.png"):
        assert (folder / name).stat().st_size > 1000
        assert str(folder / name) in printed
    assert "What to try next" in printed


def test_no_printed_sentence_was_trained_on(quick):
    folder, printed = quick
    results = json.loads((folder / "results.json").read_text("utf-8"))
    sources = [sample[0] for sample in results["samples"]]
    assert "this cat is very large" in sources
    trained = {english for english, _ in phrase_grammar.phrase_splits().train}
    for source in sources:
        assert f"  {source}\n" in printed
        assert source not in trained
    # Examples printed before training are training sentences, so the check
    # above can fail.
    assert any(f"  {english}  ->" in printed for english in trained)


def test_saved_model_translates_a_file_and_standard_input(
    quick, tmp_path, monkeypatch, capsys
):
    folder, _ = quick
    lines = tmp_path / "lines.txt"
    lines.write_text("this cat is very large\n\nthe dog eats\n", "utf-8")
    with pytest.raises(SystemExit) as leaving:
        run(monkeypatch, MODEL=folder, INPUT=lines)
    assert leaving.value.code == 0
    from_file = capsys.readouterr().out.splitlines()
    assert len(from_file) == 3  # one per input line, including empty ones
    with lines.open(encoding="utf-8") as keyboard, pytest.raises(SystemExit):
        monkeypatch.setattr("sys.stdin", keyboard)
        run(monkeypatch, MODEL=folder)
    typed = capsys.readouterr().out.splitlines()
    assert typed == [from_file[0], from_file[2]]
    lines.write_text("This CAT is very large\n\nThe dog eats\n", "utf-8")
    with pytest.raises(SystemExit):
        run(monkeypatch, MODEL=folder, INPUT=lines)
    capitals = capsys.readouterr()
    assert capitals.out.splitlines() == from_file
    said = "Capital letters are read as small ones"
    assert said in capitals.err
    with lines.open(encoding="utf-8") as keyboard, pytest.raises(SystemExit):
        monkeypatch.setattr("sys.stdin", keyboard)
        run(monkeypatch, MODEL=folder)
    capitals = capsys.readouterr()
    assert capitals.out.splitlines() == typed
    assert capitals.err.count(said) == 1  # though two lines have capitals


def test_capitals_missing_from_the_vocabulary_are_folded():
    small = ["i am here, I think", "the cat sat", "the dog sat", "I see it"]
    tokenizer = SubwordTokenizer.train_from_lines(small, 300)
    assert known_capitals(tokenizer) == {"I"}
    assert fold("I see THE Cat, It's Él", {"I"}) == "I see the cat, it's él"
    # Corpora with normal capitalization are unchanged.
    people = SubwordTokenizer.train_from_lines(["The cat", "The dog"], 290)
    assert known_capitals(people) is None
    assert known_capitals(SubwordTokenizer.train_from_lines(["a b"], 263)) == (
        set()
    )


def test_empty_translations_are_counted():
    said = count_blanks(["one", " ", "two"], ["", "", "dos"])
    assert said.startswith("1 of 2 translations are empty")
    assert said.endswith(".\n") and said.count("\n") == 1
    assert count_blanks(["one", ""], ["uno", ""]) == ""
    assert count_blanks([], []) == ""


def test_empty_translations_are_reported(quick, tmp_path, monkeypatch, capsys):
    folder, _ = quick
    mute = tmp_path / "mute"
    mute.mkdir()
    (mute / "tokenizer.model").write_bytes(
        (folder / "tokenizer.model").read_bytes()
    )
    model = keras.saving.load_model(folder / "model.keras", compile=False)
    # All scores are equal: the first id wins, which is not a word.
    for variable in model.trainable_variables:
        variable.assign(0 * variable)
    model.save(mute / "model.keras")
    (tmp_path / "lines.txt").write_text("the cat\n\nthe dog\n", "utf-8")
    with pytest.raises(SystemExit):
        run(monkeypatch, MODEL=mute, INPUT=tmp_path / "lines.txt")
    said = capsys.readouterr()
    assert said.out == "\n\n\n"
    assert "2 of 2 translations are empty" in said.err


def test_user_corpus(tmp_path, monkeypatch, capsys):
    pairs = phrase_grammar.generate_pairs(600, seed=3)
    (tmp_path / "en.txt").write_text("\n".join(e for e, _ in pairs), "utf-8")
    (tmp_path / "es.txt").write_text("\n".join(s for _, s in pairs), "utf-8")
    data = f"{tmp_path / 'en.txt'},{tmp_path / 'es.txt'}"
    run(monkeypatch, QUICK=1, DATA=data, OUT=tmp_path / "out", BUCKETS=2)
    printed = capsys.readouterr().out
    assert "\nBLEU " in printed
    assert (tmp_path / "out/model.keras").is_file()


@pytest.mark.parametrize(
    ("content", "answer"),
    [
        (None, "no file"),
        (b"", "no sentence with a translation"),
        (b"one\tuno\ntwo dos\n", "Line 2"),
        (b"caf\xe9\tcaf\xe9\n", "not UTF-8"),
    ],
)
def test_invalid_data_exits_with_one_line_and_status_2(
    content, answer, tmp_path, monkeypatch, capsys
):
    path = tmp_path / "data.tsv"
    if content is not None:
        path.write_bytes(content)
    said = complaint(run, monkeypatch, capsys, DATA=path)
    assert answer in said


def test_unequal_files_exit_with_one_line_and_status_2(
    tmp_path, monkeypatch, capsys
):
    (tmp_path / "a").write_text("one\ntwo\n")
    (tmp_path / "b").write_text("uno\n")
    said = complaint(
        run, monkeypatch, capsys, DATA=f"{tmp_path / 'a'},{tmp_path / 'b'}"
    )
    assert "2 lines" in said


@pytest.mark.parametrize(
    ("name", "value"), [("MINUTES", "soon"), ("WIDTH", "-1"), ("EPOCHS", "0")]
)
def test_invalid_setting_exits_with_one_line_and_status_2(
    name, value, monkeypatch, capsys
):
    assert f"{name} must be" in complaint(
        run, monkeypatch, capsys, **{name: value}
    )


@pytest.mark.parametrize(
    ("flags", "meant"),
    [
        (" -- WIDHT=3", "WIDTH"),
        ("k -- KERAS_BACKEND=jax EPOCH=1", "EPOCHS"),
        (" -- width=3", "WIDTH"),
        # GNU make 3.81, without options.
        (" WIDHT=3", "WIDTH"),
        ("WIDHT=3", "WIDTH"),
        ("w --jobserver-auth=3,4 -- VOCAB=9", "VOCABULARY"),
        (" -- DATASET=x", "DATA"),
    ],
)
def test_misspelled_setting_is_an_error(flags, meant, monkeypatch, capsys):
    said = complaint(run, monkeypatch, capsys, MAKEFLAGS=flags)
    assert f"did you mean {meant}?" in said


def test_other_make_variables_are_allowed():
    flags = (
        "w -- OUT=a\\ MINUTE=b WIDTH=64 BACKENDS=jax TESTS=x TABLE=y WORKERS=2 "
        "PYTHON=p DATE=x TUTORIALS= DOCS_EXECUTE=on XLA_FLAGS=--x=y "
        "MALLOC_ARENA_MAX=2"
    )
    assert read_settings({"MAKEFLAGS": flags}) == Settings()


def test_quick_run_does_not_overwrite_the_trained_model():
    folders = {
        read_settings(given).out
        for given in ({}, {"QUICK": "1"}, {"DATA": "x"})
    }
    assert len(folders) == 3
    assert read_settings({"QUICK": "1", "OUT": "here"}).out.name == "here"


def test_folder_without_a_model_exits_with_one_line(
    tmp_path, monkeypatch, capsys
):
    assert "model.keras" in complaint(run, monkeypatch, capsys, MODEL=tmp_path)


def test_bleu_counts_every_reference():
    translations = ["the cat sat on the mat", "he is tall"]
    references = [["a cat sat on a mat", "the cat sat on the mat"], ["he is"]]
    assert bleu(translations, references).score > 70
    first_only = [[group[0]] for group in references]
    assert bleu(translations, first_only).score < 40


def test_loaded_model_matches_the_saved_one(quick):
    folder, _ = quick
    model = keras.saving.load_model(folder / "model.keras")
    ids = np.array([[260, 270, 2]]), np.array([[1, 260]])
    again = keras.saving.load_model(folder / "model.keras", compile=False)
    np.testing.assert_array_equal(
        keras.ops.convert_to_numpy(model(ids)),
        keras.ops.convert_to_numpy(again(ids)),
    )


def test_answers_to_the_exercises():
    layer = MultiHeadAttention(num_heads=2, key_dim=64)
    layer.build((None, None, 128), (None, None, 128))
    assert layer.count_params() == 66_048
    # Schedules count steps from 0.
    rate = WarmupSchedule(128, 400, 0.8)
    rates = [float(rate(step)) for step in (398, 399, 400)]
    assert max(rates) == rates[1] == pytest.approx(0.0035, abs=5e-5)
    paper = float(WarmupSchedule(512, 4000)(3999))
    assert paper == pytest.approx(0.0007, abs=5e-6)
    slow = float(WarmupSchedule(128, 4000, 0.8)(1199))
    assert slow == pytest.approx(0.00034, abs=6e-6)
    assert rates[1] / slow == pytest.approx(10, abs=0.6)
    chances = np.full((1, 1, 1500), 0.1 / 1500)
    chances[0, 0, 7] += 0.9
    loss = SequenceCrossentropy(label_smoothing=0.1)
    least = float(loss(np.array([[7]]), np.log(chances).astype("float32")))
    assert least == pytest.approx(1.06, abs=0.005)
