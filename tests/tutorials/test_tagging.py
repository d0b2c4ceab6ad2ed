"""The tagging program: a quick run, its files, other data, invalid input."""

import json
import re

import keras
import numpy as np
import pytest
import tagging_settings
from tagged_phrases import tagged_phrases
from tagging_lines import accuracy, predict_tags
from word_table import WordTable

from tests.tutorials.programs import complaint, printed, runner

pytestmark = pytest.mark.one_backend("torch")

run = runner("tagging", tagging_settings.Settings)


@pytest.fixture(scope="module")
def quick(tmp_path_factory):
    """The folder of a quick run, and its printed output."""
    folder = tmp_path_factory.mktemp("tagging")
    return folder, printed(run, QUICK=1, OUT=folder)


@pytest.fixture
def treebanks(tmp_path):
    """Two treebanks, for training and for testing."""
    paths = tmp_path / "train.conllu", tmp_path / "test.conllu"
    for path, sentences in zip(paths, tagged_phrases(300, 7), strict=True):
        path.write_text(
            "\n".join(
                "".join(
                    f"{number}\t{word}\t_\t{tag}\t_\n"
                    for number, (word, tag) in enumerate(sentence, 1)
                )
                for sentence in sentences
            ),
            "utf-8",
        )
    return paths


def test_quick_run_prints_results_and_next_steps(quick):
    folder, printed = quick
    results = json.loads((folder / "results.json").read_text("utf-8"))
    shares = results["accuracy"]
    assert len(shares) == 3
    for name, found in shares.items():
        assert 0 <= found["all words"] <= 1
        assert f"{found['all words']:.2%}" in printed, name
    for name in ("model.keras", "confusion.png", "vectors.png"):
        assert (folder / name).stat().st_size > 1000
        assert str(folder / name) in printed
    assert not (folder / "backup").exists()
    assert "What to try next" in printed


def test_saved_model_tags_a_file_and_standard_input(
    quick, tmp_path, monkeypatch, capsys
):
    folder, _ = quick
    lines = tmp_path / "lines.txt"
    lines.write_text("the dog eats\n\nthis spaceship is open\n", "utf-8")
    with pytest.raises(SystemExit) as leaving:
        run(monkeypatch, MODEL=folder, INPUT=lines)
    assert leaving.value.code == 0
    from_file = capsys.readouterr().out.splitlines()
    assert len(from_file) == 3 and not from_file[1]
    assert re.fullmatch(r"the/\w+ dog/\w+ eats/\w+", from_file[0])
    with lines.open(encoding="utf-8") as keyboard, pytest.raises(SystemExit):
        monkeypatch.setattr("sys.stdin", keyboard)
        run(monkeypatch, MODEL=folder)
    typed = capsys.readouterr().out.splitlines()
    assert typed == [from_file[0], from_file[2]]


def test_separate_training_and_test_treebanks(
    treebanks, tmp_path, monkeypatch, capsys
):
    out = tmp_path / "out"
    data = ",".join(map(str, treebanks))
    run(monkeypatch, QUICK=1, DATA=data, OUT=out, WORD="dog")
    assert "sentences to train on" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        run(monkeypatch, MODEL=out, INPUT=treebanks[1])
    said = capsys.readouterr().out
    share = float(re.match(r"([\d.]+)% of [\d,]+ words are right", said)[1])
    model = keras.saving.load_model(out / "model.keras", compile=False)
    table = WordTable.load(out / "words.json")
    sentences = tagged_phrases(300, 7)[1]
    right = []
    for sentence in sentences:
        logits = model.predict_on_batch(
            table.encode([[w for w, _ in sentence]])
        )
        for (_, tag), row in zip(sentence, logits[0], strict=True):
            right.append(table.tags[int(np.argmax(row[1:]))] == tag)
    assert share == pytest.approx(100 * np.mean(right), abs=0.011)


def test_tags_do_not_depend_on_the_batch(quick):
    folder, _ = quick
    model = keras.saving.load_model(folder / "model.keras", compile=False)
    table = WordTable.load(folder / "words.json")
    sentences = [
        "the dog eats".split(),
        "they open the big red door of the old house in the street".split(),
        "dogs".split(),
    ]
    together = predict_tags(model, table, sentences, batch_size=2)
    assert list(map(len, together)) == list(map(len, sentences))
    for sentence, tags in zip(sentences, together, strict=True):
        assert predict_tags(model, table, [sentence], 4) == [tags]


def test_accuracy_counts_words():
    sentences = [[("a", "X"), ("b", "Y")], [("c", "X")]]
    assert accuracy(sentences, [["X", "X"], ["X"]]) == 2 / 3


@pytest.mark.parametrize(
    "values, answer",
    [
        ({"DATA": "one.conllu"}, "DATA must be two files"),
        ({"DATA": "no.conllu,no.conllu"}, "no.conllu"),
        ({"EPOCHS": "0"}, "EPOCHS must be a positive number"),
        ({"MODEL": "nowhere"}, "MODEL must be a folder with"),
    ],
)
def test_invalid_input_exits_with_one_line_and_status_2(
    values, answer, monkeypatch, capsys
):
    said = complaint(run, monkeypatch, capsys, **values)
    assert answer in said
