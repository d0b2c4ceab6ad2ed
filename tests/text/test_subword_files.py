"""SubwordTokenizer: training, saving and loading."""

import io
import os

import keras
import pytest
import sentencepiece

from keras_attn.text import SubwordTokenizer
from tests.text.samples import HARD, SCRIPTS

pytestmark = pytest.mark.one_backend

LINES = SCRIPTS["latin"] + SCRIPTS["greek"]


@pytest.fixture(scope="module")
def tokenizer():
    return SubwordTokenizer.train_from_lines(LINES, 400)


def saved(tokenizer, tmp_path, name="saved"):
    tokenizer.save(tmp_path / name)
    return (tmp_path / name).read_bytes()


def test_equal_texts_give_equal_bytes(tokenizer, tmp_path):
    again = SubwordTokenizer.train_from_lines(iter(LINES), 400)
    other = SubwordTokenizer.train_from_lines(LINES[:-1], 400)
    first = saved(tokenizer, tmp_path)
    assert saved(again, tmp_path) == first
    assert saved(other, tmp_path) != first
    assert os.fsencode(tmp_path.parts[1]) not in first


def test_training_from_files(tokenizer, tmp_path):
    one, two = tmp_path / "one.txt", tmp_path / "two.txt"
    one.write_bytes("\n".join(LINES[:3]).encode() + b"\n\n")
    two.write_bytes("\r\n".join(LINES[3:]).encode())
    expected = saved(tokenizer, tmp_path)
    both = SubwordTokenizer.train([one, str(two)], 400)
    assert saved(both, tmp_path) == expected
    one.write_text("\n".join(LINES), encoding="utf-8", newline="\n")
    for path in (one, str(one)):
        learned = SubwordTokenizer.train(path, 400)
        assert saved(learned, tmp_path) == expected


def test_long_lines_are_used():
    # By default, sentencepiece skips lines of more than 4,192 bytes.
    learned = SubwordTokenizer.train_from_lines(["abcde " * 2000], 300)
    assert learned.tokens("abcde") == ["▁abcde"]


def test_a_small_text_gives_a_smaller_vocabulary():
    learned = SubwordTokenizer.train_from_lines(["ab ab"], 8000)
    assert learned.vocabulary_size == 4 + 256 + len("▁ a b ab ▁a ▁ab".split())
    assert learned.decode(learned.encode(HARD)) == HARD


def test_the_error_names_the_smallest_possible_vocabulary():
    with pytest.raises(ValueError, match="must be at least") as info:
        SubwordTokenizer.train_from_lines(LINES, 20)
    least = int(str(info.value).split("at least ")[1].split()[0])
    assert SubwordTokenizer.train_from_lines(LINES, least).vocabulary_size
    with pytest.raises(ValueError, match=f"at least {least}"):
        SubwordTokenizer.train_from_lines(LINES, least - 1)


def test_uncovered_characters_are_encoded_as_bytes():
    lines = ["common words"] * 500 + ["ѫ"]
    full = SubwordTokenizer.train_from_lines(lines, 300, character_coverage=1.0)
    most = SubwordTokenizer.train_from_lines(
        lines, 300, character_coverage=0.999
    )
    assert "ѫ" in full.tokens("ѫ")[-1]
    assert most.tokens("ѫ")[-1] == "<0xAB>"


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: SubwordTokenizer.train_from_lines([]), "no text"),
        (lambda: SubwordTokenizer.train_from_lines(["", ""]), "no text"),
        (lambda: SubwordTokenizer.train_from_lines("abc"), "not one text"),
        (lambda: SubwordTokenizer.train_from_lines(["a", 3]), "texts, of str"),
        (lambda: SubwordTokenizer.train_from_lines(["\udc80"]), "surrogates"),
        (lambda: SubwordTokenizer.train_from_lines(["a"], 0), "positive"),
        (lambda: SubwordTokenizer.train_from_lines(["a"], 3.5), "positive"),
        (
            lambda: SubwordTokenizer.train_from_lines(
                ["a"], character_coverage=2
            ),
            "character_coverage",
        ),
    ],
)
def test_invalid_training_arguments_raise(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_invalid_training_files_raise(tmp_path):
    bad = tmp_path / "bad.txt"
    bad.write_bytes(b"fine\nalso\ncaf\xe9\n")
    with pytest.raises(ValueError, match=r"`files` .*: line 3 of .*bad\.txt"):
        SubwordTokenizer.train(bad)
    bad.write_bytes(b"")
    with pytest.raises(ValueError, match="no text"):
        SubwordTokenizer.train(bad)
    with pytest.raises(FileNotFoundError):
        SubwordTokenizer.train(tmp_path / "none.txt")


def test_nothing_is_printed(capfd):
    learned = SubwordTokenizer.train_from_lines(LINES, 400)
    learned.decode(learned.encode("a"))
    assert capfd.readouterr() == ("", "")
    learned.tokenize(["a"])  # TensorFlow may print once when it starts.
    capfd.readouterr()
    keras.utils.set_random_seed(1)
    learned.detokenize(learned.tokenize(["a"]))
    assert capfd.readouterr() == ("", "")


def test_save_and_load(tokenizer, tmp_path):
    path = tmp_path / "vocabulary"
    path.write_text("old")
    tokenizer.save(str(path))
    for loaded in map(SubwordTokenizer.load, (path, str(path))):
        assert loaded.vocabulary_size == tokenizer.vocabulary_size
        texts = LINES + HARD
        assert loaded.encode(texts) == tokenizer.encode(texts)
        assert loaded.decode(loaded.encode(texts)) == texts
    assert [p.name for p in tmp_path.iterdir()] == ["vocabulary"]


def test_a_failed_save_leaves_the_old_file(tokenizer, tmp_path, monkeypatch):
    path = tmp_path / "vocabulary"
    path.write_text("old")

    def full(*_):
        raise OSError("no space")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(OSError, match="no space"):
        tokenizer.save(path)
    assert path.read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["vocabulary"]
    monkeypatch.undo()
    with pytest.raises(FileNotFoundError):
        tokenizer.save(tmp_path / "none" / "vocabulary")


@pytest.mark.parametrize("share", [0.0, 0.3, 0.6, 0.9, 0.999])
def test_a_corrupt_file_raises_a_one_line_error(tokenizer, tmp_path, share):
    whole = saved(tokenizer, tmp_path)
    path = tmp_path / "broken"
    path.write_bytes(whole[: int(share * len(whole))])
    with pytest.raises(ValueError, match=r"`path` must be .*broken, ") as info:
        SubwordTokenizer.load(path)
    assert "\n" not in str(info.value)


def test_other_sentencepiece_models_raise(tmp_path):
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(LINES),
        model_writer=model,
        model_type="bpe",
        vocab_size=400,
        byte_fallback=True,
        pad_id=0,
        bos_id=1,
        eos_id=2,
        unk_id=3,
        minloglevel=2,
        hard_vocab_limit=False,
    )
    path = tmp_path / "foreign"
    path.write_bytes(model.getvalue())
    with pytest.raises(ValueError, match=r"`path` must be .*foreign"):
        SubwordTokenizer.load(path)
