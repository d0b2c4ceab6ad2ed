"""BytePairTokenizer: compared with GPT-2's tokenizer in transformers."""

import itertools
import json

import numpy as np
import pytest
import transformers
from hypothesis import given, settings
from hypothesis import strategies as st

from keras_attn.text import BytePairTokenizer
from keras_attn.text.byte_pairs import joined, words
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
    return transformers.GPT2Tokenizer(
        str(directory / "vocab.json"), str(directory / "merges.txt")
    )


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
        assert tokenizer.decode(ids) == text
        assert tokenizer.decode(np.array(ids, "int32")) == text
        half = ids[: len(ids) // 2]
        assert tokenizer.decode(half) == theirs.decode(
            half, clean_up_tokenization_spaces=False
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


def by_counting(lines, number):
    """Learns merges by recounting all pairs at each step."""
    texts = [list(word) for line in lines for word in words(line)]
    merges = []
    while len(merges) < number:
        counts = {}
        for pieces in texts:
            for pair in itertools.pairwise(pieces):
                counts[pair] = counts.get(pair, 0) + 1
        best = min(counts, key=lambda pair: (-counts[pair], pair))
        merges.append(best)
        texts = [joined_once(pieces, best) for pieces in texts]
    return merges


def joined_once(pieces, pair):
    found = []
    for piece in pieces:
        if found and (found[-1], piece) == pair and found[-1] is not None:
            found[-1] = found[-1] + piece
            found.append(None)
        else:
            found.append(piece)
    return [piece for piece in found if piece is not None]


def test_the_most_frequent_pair_is_learned():
    lines = LINES[:12]
    tokenizer = BytePairTokenizer.train_from_lines(lines, 257 + 40)
    assert tokenizer._merges == by_counting(lines, 40)


def test_the_earliest_learned_pair_is_merged_first():
    ranks = {("a", "b"): 1, ("b", "c"): 0, ("a", "bc"): 2}
    assert joined("abcab", ranks) == ["abc", "ab"]
    assert joined("", ranks) == []


@pytest.mark.parametrize(
    "name, content, message",
    [
        ("vocab.json", None, "a folder that contains vocab.json"),
        ("merges.txt", None, "a folder that contains merges.txt"),
        ("vocab.json", "{", "must contain a JSON object"),
        ("vocab.json", "[1]", "a JSON object in vocab.json.*list"),
        ("vocab.json", '{"a": 1}', "contiguous ids from 0"),
        ("vocab.json", '{"a": 0}', "contain the token `end` and a piece"),
        ("merges.txt", "a b c\n", r"merges.txt of .* pairs.*\('a', 'b', 'c'\)"),
        ("merges.txt", "a ☃\n", "whose concatenation is in the vocabulary"),
    ],
)
def test_corrupt_files_raise(name, content, message, tokenizer, tmp_path):
    tokenizer.save(tmp_path)
    if content is None:
        (tmp_path / name).unlink()
    else:
        (tmp_path / name).write_text(content, encoding="utf-8")
    with pytest.raises(ValueError, match=message) as info:
        BytePairTokenizer.load(tmp_path)
    assert "\n" not in str(info.value)


def test_a_vocabulary_without_an_end_token_raises(tokenizer, tmp_path):
    tokenizer.save(tmp_path)
    path = tmp_path / "vocab.json"
    pieces = json.loads(path.read_text(encoding="utf-8"))
    del pieces[END]
    path.write_text(json.dumps(pieces), encoding="utf-8")
    with pytest.raises(
        ValueError, match="must contain the token `end` and a piece"
    ):
        BytePairTokenizer.load(tmp_path)


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
