"""BytePairTokenizer: compared with GPT-2's tokenizer in transformers."""

import numpy as np
import pytest
import transformers
from hypothesis import given, settings
from hypothesis import strategies as st

from keras_attn.text import BytePairTokenizer
from tests.helpers.full_disk import full_disk
from tests.text.samples import SCRIPTS, varied_texts

pytestmark = pytest.mark.one_backend

LINES = [line for lines in SCRIPTS.values() for line in lines] * 2 + [
    "The quick brown fox doesn't jump; it's 12:30 and they'll wait.",
    "def function(x):\n    return x  # twice\n",
] * 5
END = "<|endoftext|>"
PARTS = [*LINES, END, "'s", "'LL", "don't", "1/2", "x²"]


@pytest.fixture(scope="module")
def tokenizer():
    return BytePairTokenizer.train_from_lines(LINES, 420)


@pytest.fixture(scope="module")
def theirs(tokenizer, tmp_path_factory):
    directory = tmp_path_factory.mktemp("bpe")
    tokenizer.save(directory)
    return transformers.GPT2Tokenizer.from_pretrained(directory)


def test_same_ids_on_a_thousand_texts(tokenizer, theirs):
    texts = varied_texts(PARTS, 1000)
    assert len(texts) == 1000
    wrong = [
        (text, tokenizer.tokens(text), theirs.tokenize(text))
        for text in texts
        if tokenizer.encode(text) != theirs(text)["input_ids"]
    ]
    assert not wrong, wrong[:3]
    assert tokenizer.encode(texts[:9]) == [
        tokenizer.encode(t) for t in texts[:9]
    ]


def test_decode_restores_the_text(tokenizer, theirs):
    for text in varied_texts(PARTS, 300, seed=1):
        ids = tokenizer.encode(text)
        assert tokenizer.decode(ids, skip_special_tokens=False) == text
        assert tokenizer.decode(np.array(ids, "int32")) == (
            text.replace(END, "")
        )
        half = ids[: len(ids) // 2]
        assert tokenizer.decode(half, skip_special_tokens=False) == (
            theirs.decode(half)
        )


@settings(max_examples=100, deadline=None)
@given(st.text())
def test_any_text_round_trips(text):
    tokenizer = BytePairTokenizer.train_from_lines(["a b"], 257)
    text = text.encode("utf-8", "ignore").decode()
    assert tokenizer.decode(tokenizer.encode(text)) == text


def test_the_end_token_is_one_piece(tokenizer):
    ids = tokenizer.encode(f"one{END} two")
    assert ids.count(tokenizer.end_id) == 1
    assert (
        tokenizer.start_id == tokenizer.end_id == tokenizer.vocabulary_size - 1
    )
    assert tokenizer.pad_id is None


def test_save_and_load(tokenizer, tmp_path):
    tokenizer.save(tmp_path / "new")
    loaded = BytePairTokenizer.load(tmp_path / "new")
    for text in varied_texts(PARTS, 300, seed=2):
        assert loaded.encode(text) == tokenizer.encode(text)
    before = (tmp_path / "new" / "vocab.json").read_bytes()
    other = BytePairTokenizer.train_from_lines(LINES, 300)
    with full_disk(100), pytest.raises(OSError):
        other.save(tmp_path / "new")
    assert (tmp_path / "new" / "vocab.json").read_bytes() == before


def test_the_most_frequent_pair_is_merged_first():
    lines = ["hug hugs hugging bug"] * 5
    tokenizer = BytePairTokenizer.train_from_lines(lines, 257 + 3)
    learned = [t for t in tokenizer.vocabulary[256:] if t != END]
    assert learned == ["ug", "hug", "Ġhug"]
    assert tokenizer.tokens("a hug") == ["a", "Ġhug"]


@pytest.mark.parametrize(
    "name, content, message",
    [
        ("vocab.json", None, "a folder that contains vocab.json"),
        ("merges.txt", None, "a folder that contains merges.txt"),
        ("vocab.json", "{", "must contain a JSON object"),
        ("vocab.json", "[1]", "a JSON object in vocab.json.*list"),
        ("vocab.json", '{"a": 1, "b": 1}', "different id for each token"),
        ("vocab.json", '{"a": -1}', r"ids in \[0, 2\*\*24\). Received: -1"),
        ("vocab.json", '{"a": 99999999}', r"ids in \[0, 2\*\*24\)"),
        ("merges.txt", "a b c\n", r"merges.txt of .* pairs.*\('a', 'b', 'c'\)"),
        ("merges.txt", "a ☃\n", "whose concatenation is in it too"),
    ],
)
def test_corrupt_files_raise(name, content, message, tokenizer, tmp_path):
    tokenizer.save(tmp_path)
    (tmp_path / "tokenizer.json").unlink()
    if content is None:
        (tmp_path / name).unlink()
    else:
        (tmp_path / name).write_text(content, encoding="utf-8")
    with pytest.raises(ValueError, match=message) as info:
        BytePairTokenizer.load(tmp_path)
    assert "\n" not in str(info.value)


def test_a_token_that_is_not_in_the_vocabulary_raises(tokenizer):
    vocab = {t: i for i, t in enumerate(tokenizer.vocabulary) if t != END}
    with pytest.raises(ValueError, match="must contain the token `bos_token`"):
        BytePairTokenizer(vocab, [])
    with pytest.raises(ValueError, match="contain the token `pad_token`"):
        BytePairTokenizer({**vocab, END: 419}, [], pad_token="<pad>")


def test_added_tokens_come_after_the_vocabulary(tokenizer, tmp_path):
    vocab = {t: i for i, t in enumerate(tokenizer.vocabulary)}
    more = BytePairTokenizer(vocab, [], additional_special_tokens=["<a>", "b"])
    size = tokenizer.vocabulary_size
    assert more.encode("<a>") == [size] and more.vocabulary_size == size + 1
    assert more.special_ids == tuple(sorted([vocab["b"], size - 1, size]))
    more.save(tmp_path)
    assert BytePairTokenizer.load(tmp_path).encode("x<a>b") == more.encode(
        "x<a>b"
    )


def test_a_space_before_the_text(tokenizer, tmp_path):
    spaced = BytePairTokenizer.train_from_lines(
        LINES, 420, add_prefix_space=True, pad_token="<pad>"
    )
    assert spaced.tokens("he") == spaced.tokens(" he")
    assert spaced.vocabulary_size == 420
    spaced.save(tmp_path)
    loaded = BytePairTokenizer.load(tmp_path)
    assert loaded.encode("he") == spaced.encode("he")
    assert loaded.pad_id == spaced.pad_id == 419


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda t: t.encode(3), "`text` must be a str.*type int"),
        (lambda t: t.decode([-1]), r"`ids` must lie in \[0, 420\)"),
        (lambda t: t.decode([420]), r"`ids` must lie in \[0, 420\)"),
        (lambda t: t.train_from_lines("abc", 300), "an iterable of texts"),
        (lambda t: t.train_from_lines(["abc"], 256), "must be at least 257"),
    ],
)
def test_invalid_arguments_raise(call, message, tokenizer):
    with pytest.raises(ValueError, match=message):
        call(tokenizer)
