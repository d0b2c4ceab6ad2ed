"""The XLNet tutorial: quick runs, saved models, invalid input."""

import json

import keras
import numpy as np
import pytest
import xlnet_settings
from permuted_batches import permuted, permuted_batches

from keras_attn.text import WordPieceTokenizer, sentence_pairs
from tests.tutorials.programs import complaint, printed, runner

pytestmark = pytest.mark.one_backend("torch")

run = runner("xlnet", xlnet_settings.Settings)
TEXT = ["the old cat saw a bird", "a bird saw the old cat"] * 4


@pytest.fixture(scope="module")
def quick(tmp_path_factory):
    """The folder of a quick run, and its printed output."""
    folder = tmp_path_factory.mktemp("xlnet")
    return folder, printed(run, QUICK=1, OUT=folder)


def test_quick_run_prints_results_and_next_steps(quick):
    folder, said = quick
    results = json.loads((folder / "results.json").read_text("utf-8"))
    assert results["xlnet"]["steps"] == results["bert"]["steps"] > 0
    assert [*results["fine-tuned"]] == ["XLNet", "BERT", "from nothing"]
    for found in results["fine-tuned"].values():
        assert len(found["scores"]) == 1 and 0 <= found["scores"][0] <= 1
    cities = results["new york"]
    # BERT predicts each token independently, however long it trains.
    assert cities["BERT"]["nats"] > 3.4
    assert said.count(": 1.000000") == 5
    assert said.count(" content ") == 6  # each token moves that, and no guess
    assert sum(count for _, count in results["by step"].values()) > 0
    assert not list(folder.glob("backup*"))
    assert "What to try next" in said
    model = keras.saving.load_model(folder / "model.keras", compile=False)
    tokenizer = WordPieceTokenizer.load(folder)
    assert model.vocabulary_size == tokenizer.vocabulary_size


def test_user_documents_and_bert_model(tmp_path, monkeypatch, capsys, quick):
    import bert_settings

    text = tmp_path / "text.txt"
    text.write_text(
        "\n\n".join("\n".join(TEXT) for _ in range(30)), encoding="utf-8"
    )
    bert = runner("bert", bert_settings.Settings)
    bert(monkeypatch, QUICK=1, DATA=text, OUT=tmp_path / "bert")
    out = tmp_path / "out"
    values = {"DATA": text, "BERT": tmp_path / "bert", "ARMS": "XLNet,BERT"}
    run(monkeypatch, QUICK=1, OUT=out, **values)
    results = json.loads((out / "results.json").read_text("utf-8"))
    assert "bert" not in results
    assert [*results["fine-tuned"]] == ["XLNet", "BERT"]
    assert (out / "vocab.txt").read_text("utf-8") == (
        tmp_path / "bert/vocab.txt"
    ).read_text("utf-8")


@pytest.mark.parametrize(
    "values, answer",
    [
        ({"DATA": "nowhere"}, "There is no file nowhere."),
        ({"TUNE": "nowhere", "PASSAGES": "9"}, "must be a folder with one of"),
        ({"BERT": "nowhere", "PASSAGES": "9"}, "must be a folder with"),
        ({"ARMS": "XLNet,GPT"}, "ARMS must be some of"),
        ({"WIDTH": "20", "HEADS": "4"}, "WIDTH must be a multiple of twice"),
        ({"CONTEXT": "4"}, "CONTEXT must be at least 8"),
        ({"SHARE": "2"}, "SHARE must be at most 1"),
        ({"RATES": "high"}, "RATES must be positive numbers"),
    ],
)
def test_invalid_input_exits_with_one_line_and_status_2(
    values, answer, monkeypatch, capsys
):
    said = complaint(run, monkeypatch, capsys, **values)
    assert answer in said


def test_batches_differ_per_epoch():
    tokenizer = WordPieceTokenizer.train_from_lines(TEXT, 40)
    documents = [tokenizer.encode(TEXT) for _ in range(4)]
    pairs = sentence_pairs(documents, 21, seed=0)
    batches = permuted_batches(pairs, tokenizer, 24, 2, seed=1)
    (inputs, labels), (again, _) = batches[0], batches[0]
    np.testing.assert_array_equal(inputs["order"], again["order"])
    batches.set_epoch(1)
    drawn = [permuted(pairs[:2], tokenizer, 24, draw) for draw in (1, 2)]
    assert (drawn[0][0]["order"] != drawn[1][0]["order"]).any()
    # Targets are at their positions and last in the permutation order.
    positions = inputs["target_positions"]
    there = labels >= 0
    at_places = np.take_along_axis(inputs["token_ids"], positions, 1)
    np.testing.assert_array_equal(at_places[there], labels[there])
    steps = np.take_along_axis(inputs["order"], positions, 1)[there]
    assert (steps > 0).all()
    assert (inputs["order"] > 0).sum() == there.sum()
    special = np.isin(inputs["token_ids"], list(tokenizer.special_ids))
    assert not (inputs["order"][special] > 0).any()
