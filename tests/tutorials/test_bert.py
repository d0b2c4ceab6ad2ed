"""The BERT tutorial: quick runs, saved models, invalid input."""

import gzip
import json

import bert_settings
import documents
import numpy as np
import pytest
from masked_batches import masked, masked_batches

from keras_attn.text import SentencePair, WordPieceTokenizer
from tests.tutorials.programs import complaint, printed, runner

pytestmark = pytest.mark.one_backend("jax")

run = runner("bert", bert_settings.Settings)


@pytest.fixture(scope="module")
def quick(tmp_path_factory):
    """The folder of a quick run, and its printed output."""
    folder = tmp_path_factory.mktemp("bert")
    return folder, printed(run, QUICK=1, OUT=folder)


def test_quick_run_prints_results_and_next_steps(quick):
    folder, said = quick
    results = json.loads((folder / "results.json").read_text("utf-8"))
    for name in ("first", "among_five", "counting", "follows"):
        assert 0 <= results[name] <= 1
    assert results["steps"] == len(results["losses"]) > 0
    assert not (folder / "backup").exists()
    assert "row 1, 17 of 24 places" in said  # counted by hand, without padding
    assert f"MODEL={folder}" in said and "What to try next" in said


def test_saved_model_fills_masks(quick, tmp_path, monkeypatch, capsys):
    lines = tmp_path / "lines.txt"
    lines.write_text("the [MASK] book\n\n[MASK] a [MASK]\n", encoding="utf-8")
    with pytest.raises(SystemExit) as leaving:
        run(monkeypatch, MODEL=quick[0], INPUT=lines)
    assert leaving.value.code == 0
    said = capsys.readouterr().out.splitlines()
    assert len(said) == 3  # one per mask
    assert all(line.count("%") == 5 for line in said)


def test_line_without_a_mask_is_an_error(quick, tmp_path, monkeypatch, capsys):
    lines = tmp_path / "lines.txt"
    lines.write_text("no mask here\n", encoding="utf-8")
    said = complaint(run, monkeypatch, capsys, MODEL=quick[0], INPUT=lines)
    assert "must have a [MASK]" in said


def test_user_documents(tmp_path, monkeypatch, capsys):
    text = tmp_path / "text.txt"
    text.write_text("One dog.\nTwo cats.\nA fish.\n\n" * 25, encoding="utf-8")
    run(monkeypatch, QUICK=1, ROTARY=0, DATA=text, OUT=tmp_path / "out")
    said = capsys.readouterr().out
    assert "23 documents to learn from, 2 kept" in said


def test_read_documents(tmp_path):
    bank = tmp_path / "bank.conllu.gz"
    with gzip.open(bank, "wt", encoding="utf-8") as stream:
        stream.write(
            "# newdoc id = a\n# text = One.\n1\tOne\n\n# text = Two.\n\n"
            "# newdoc id = b\n# text = Three.\n\n"
        )
    text = tmp_path / "text.txt"
    text.write_text("Four.\n\n\nFive.\nSix.\n", encoding="utf-8")
    assert documents.read_documents(f"{bank}, {text}") == [
        ["One.", "Two."],
        ["Three."],
        ["Four."],
        ["Five.", "Six."],
    ]


@pytest.mark.parametrize(
    "values, answer",
    [
        ({"DATA": "nowhere"}, "There is no file nowhere."),
        ({"WIDTH": "20", "HEADS": "4"}, "WIDTH must be a multiple of twice"),
        ({"CONTEXT": "4"}, "CONTEXT must be at least 8"),
        ({"EPOCHS": "0"}, "EPOCHS must be a positive number"),
        ({"PIECES": "20"}, "`vocabulary_size` must be at least"),
        ({"MODEL": "nowhere"}, "MODEL must be a folder with"),
    ],
)
def test_invalid_input_exits_with_one_line_and_status_2(
    values, answer, monkeypatch, capsys
):
    said = complaint(run, monkeypatch, capsys, **values)
    assert answer in said


def test_single_document_is_an_error(tmp_path, monkeypatch, capsys):
    text = tmp_path / "text.txt"
    text.write_text("One dog.\nTwo cats.\n", encoding="utf-8")
    said = complaint(run, monkeypatch, capsys, DATA=text)
    assert "two documents at least. Found: 1" in said


def test_masks_differ_per_epoch_and_are_reproducible():
    tokenizer = WordPieceTokenizer(
        "[PAD] [UNK] [CLS] [SEP] [MASK] a b c d e f g h".split()
    )
    random = np.random.default_rng(0)
    pairs = [
        SentencePair(
            random.integers(5, 13, 7).tolist(),
            random.integers(5, 13, 6).tolist(),
            bool(number % 3),
        )
        for number in range(10)
    ]
    batches = masked_batches(pairs, tokenizer, 18, 4, seed=3)
    first = batches[0]
    inputs, says = first
    assert inputs["token_ids"].shape == inputs["segment_ids"].shape == (4, 18)
    labels = says["token_logits"]
    assert labels.shape == inputs["masked_positions"].shape == (4, 3)
    assert says["next_sentence_logits"].shape == (4, 1)
    batches.set_epoch(1)
    assert any(
        (batches[n][0]["token_ids"] != inputs["token_ids"]).any()
        for n in range(1)
    )
    batches.set_epoch(0)
    again = batches[0]
    for one, other in zip(first, again, strict=True):
        for name, value in one.items():
            np.testing.assert_array_equal(other[name], value)
    # Labels are the masked ids; class 0 means that the sentence follows.
    inputs, says = masked(pairs, tokenizer, 18, 5)
    for row, (pair, ids) in enumerate(
        zip(pairs, inputs["token_ids"], strict=True)
    ):
        whole = [2, *pair.first, 3, *pair.second, 3]
        for place, label in zip(
            inputs["masked_positions"][row],
            says["token_logits"][row],
            strict=True,
        ):
            if label >= 0:
                assert whole[place] == label
                whole[place] = ids[place]
        assert ids[: len(whole)].tolist() == whole
        assert says["next_sentence_logits"][row, 0] == (not pair.is_next)
