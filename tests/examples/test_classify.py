"""examples/classify.py: predictions, files, bad input."""

import csv
import runpy

import keras
import numpy as np
import pytest

from keras_attn import models, pretrained
from keras_attn.datasets import LabeledSentence, make_entailment_pairs
from keras_attn.text import (
    BytePairTokenizer,
    WordPieceTokenizer,
    load_tokenizer,
)
from tests.examples.test_programs import PROGRAMS
from tests.helpers.programs import ROOT, results, run

pytestmark = pytest.mark.one_backend

PAIRS = make_entailment_pairs(120)
LINES = [text for pair in PAIRS for text in pair[:2]]


@pytest.fixture(scope="module")
def trained(train_once):
    """The folder of a quick training on synthetic sentences, and its output."""
    return train_once("classify", *PROGRAMS["classify"].options)


@pytest.fixture(scope="module")
def pairs(tmp_path_factory):
    """The options for a table of pairs, the second line of which is bad."""
    path = tmp_path_factory.mktemp("data") / "pairs.csv"
    rows = [(first, yes, second) for first, second, yes in PAIRS]
    with open(path, "w", encoding="utf-8", newline="") as file:
        names = ("premise", "entailed", "hypothesis")
        csv.writer(file).writerows([names, ["a field"], *rows])
    options = ("--data", path, "--text-column", "premise", "--label-column")
    return *options, "entailed", "--text-pair-column", "hypothesis"


@pytest.fixture(scope="module")
def bert(tmp_path_factory):
    """The folder of a tiny BERT with its tokenizer."""
    folder = tmp_path_factory.mktemp("bert")
    tokenizer = WordPieceTokenizer.train_from_lines(LINES, 200)
    tokenizer.save(folder)
    sizes = {"num_layers": 2, "num_heads": 2, "hidden_dim": 16}
    sizes |= {"intermediate_dim": 32, "max_sequence_length": 40}
    model = models.Bert(tokenizer.vocabulary_size, **sizes)
    pretrained.save(models.BertPretrainer(model), folder)
    return folder


def test_predictions_agree_with_the_evaluation(trained, tmp_path):
    out, done = trained
    found = run(
        "classify", "predict", "--input", out / "test.csv", "--out", out
    ).stdout.splitlines()
    with open(out / "test.csv", encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    labels = [line.split("\t")[0] for line in found]
    right = [row["label"] == x for row, x in zip(rows, labels, strict=True)]
    assert np.mean(right) == results(out)["scores"]["accuracy"]
    assert run("classify", "evaluate", "--out", out).stdout in done.stdout
    # The same texts as lines, from a file and from standard input.
    lines = tmp_path / "lines.txt"
    lines.write_text("".join(f"{row['text']}\n" for row in rows[:3]), "utf-8")
    options = ("--top", 8, "--out", out)
    from_file = run("classify", "predict", "--input", lines, *options).stdout
    typed = run("classify", "predict", *options, stdin=lines.read_text()).stdout
    for line, other, label in zip(
        from_file.splitlines(), typed.splitlines(), labels, strict=False
    ):
        assert line.split("\t")[::2] == other.split("\t")[::2]
        assert line.split("\t")[0] == label
        assert sum(map(float, line.split("\t")[1::2])) == pytest.approx(1, 1e-3)


@pytest.mark.parametrize("way", [("--lora", 2), ("--freeze", ".")])
def test_bert_with_few_trained_weights(way, bert, pairs, tmp_path):
    options = (*pairs, "--model", bert, "--epochs", 2, "--out", tmp_path)
    done = run("classify", "train", *options, *way)
    assert f"{pairs[1]}, line 2: expected 3 fields" in done.stderr
    assert "Skipped 1 bad line." in done.stderr
    strict = run("classify", "train", *options, "--strict", status=1)
    assert f"classify.py: {pairs[1]}, line 2: expected" in strict.stderr
    model = keras.saving.load_model(tmp_path / "model.keras", compile=False)
    encoder = pretrained.load(bert).encoder
    for ours, theirs in zip(
        model.encoder.weights, encoder.weights, strict=True
    ):
        # Adapters are part of the matrix that is saved.
        adapted = ours.path.endswith(("query/kernel", "value/kernel"))
        adapted = adapted and way[0] == "--lora"
        same = np.array_equal(*map(keras.ops.convert_to_numpy, (ours, theirs)))
        assert same != (adapted or ours.path.startswith("pooler/")), ours.path
    found = run(
        "classify", "predict", "--out", tmp_path, stdin="a man\tthe man\nsat\n"
    )
    labels = {line.split("\t")[0] for line in found.stdout.splitlines()}
    assert labels <= {"True", "False"}


@pytest.mark.parametrize("length", [40, 9, 7])
def test_rows_equal_those_of_the_tokenizer_of_bert(length, bert):
    program = runpy.run_path(str(ROOT / "examples" / "classify.py"))
    model, tokenizer = pretrained.load(bert), load_tokenizer(bert)
    columns = {"text_pair_column": "pair"}
    settings = {"labels": [], "columns": columns, "max_length": length}
    classifier = program["TextClassifier"](model, tokenizer, settings)
    texts = [LabeledSentence(x, "", y) for x, y, _ in PAIRS[:9]]
    inputs, _ = classifier.encode(texts)
    first, second, _ = map(list, zip(*PAIRS[:9], strict=True))
    for name, rows in tokenizer.pack(first, second, max_length=length).items():
        width = rows.shape[1]
        np.testing.assert_array_equal(inputs[name][:, :width], rows)
        assert not inputs[name][:, width:].any()
    mask = inputs["token_ids"] != tokenizer.pad_id
    np.testing.assert_array_equal(inputs["padding_mask"], mask)


def test_gpt2_and_layerwise_rates(pairs, tmp_path):
    folder, out = tmp_path / "gpt2", tmp_path / "out"
    tokenizer = BytePairTokenizer.train_from_lines(LINES, 300)
    tokenizer.save(folder)
    end = tokenizer.end_id
    sizes = {"num_layers": 1, "num_heads": 2, "hidden_dim": 16}
    special = {"pad_id": None, "start_id": end, "end_id": end}
    model = models.GPT(
        tokenizer.vocabulary_size, max_sequence_length=40, **sizes, **special
    )
    pretrained.save(model, folder)
    options = ("--model", folder, "--layer-decay", 0.5, "--epochs", 1)
    run("classify", "train", *pairs, *options, "--out", out)
    model = keras.saving.load_model(out / "model.keras", compile=False)
    assert model.pooled_token == "last"
    assert results(out)["settings"]["max_length"] == 40
    # The folder of a classifier is a pretrained model, too.
    options = ("--model", out, "--freeze", "embedding", "--epochs", 1)
    done = run("classify", "train", *pairs, *options, "--out", tmp_path / "2")
    assert "parameters are trained" in done.stdout


def test_labels_that_are_not_in_the_training_set_are_reported(tmp_path):
    lines = ["good,yes", "bad,no"] * 8
    tables = {
        "train": lines,
        "validation": [*lines[:4], "so so,perhaps"],
        "test": [*lines[:2], "so so,never", "hm,perhaps"],
    }
    paths = [tmp_path / f"{name}.csv" for name in tables]
    for path, rows in zip(paths, tables.values(), strict=True):
        path.write_text("\n".join(["text,label", *rows]), "utf-8")
    options = ("--data", *paths, "--layers", 1, "--width", 32, "--epochs", 1)
    out = tmp_path / "out"
    done = run("classify", "train", *options, "--subwords", 300, "--out", out)
    reason = "labels not trained on: "
    assert f"validation: {reason}perhaps\n" in done.stderr
    assert f"test: {reason}never, perhaps\n" in done.stderr
    assert results(out)["scores"]["accuracy"] <= 0.5
    options = ("--data", paths[2], "--out", out)
    done = run("classify", "evaluate", *options)
    assert f"{paths[2]}: {reason}never, perhaps\n" in done.stderr
