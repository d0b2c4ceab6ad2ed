"""Splits by a hash of the content."""

import hashlib

import pytest

from keras_attn.datasets import split_by_hash

pytestmark = pytest.mark.one_backend


def remainder(text, parts):
    return int.from_bytes(hashlib.sha256(text.encode()).digest(), "big") % parts


@pytest.mark.parametrize("parts", [3, 20])
def test_parts(parts):
    pairs = [(f"sentence {n}", f"t{k}") for n in range(600) for k in (0, 1)]
    train, validation, test = split_by_hash(pairs, parts=parts)
    for part, remainders in (
        (test, {0}),
        (validation, {1}),
        (train, set(range(2, parts))),
    ):
        assert {remainder(text, parts) for text, _ in part} == remainders
        kept = set(part)
        assert part == [pair for pair in pairs if pair in kept]
    assert sorted(train + validation + test) == sorted(pairs)


def test_keys():
    # The part of a text never changes; these are sha256("Go.") and so on.
    texts = ["Go.", "Hi.", "Run!", "Fire!", "a b", "ñ", "\ud800"]
    expected = split_by_hash(texts)
    assert [len(part) for part in expected] == [6, 1, 0]
    records = [([*text.split(" ")], text) for text in texts]
    for key in (None, lambda record: record[1]):
        parts = split_by_hash(iter(records), key)
        assert [[text for _, text in part] for part in parts] == list(expected)
    words = split_by_hash([text.split(" ") for text in texts])
    assert [[" ".join(w) for w in part] for part in words] == list(expected)
    assert split_by_hash([]) == ([], [], [])


@pytest.mark.parametrize(
    "arguments, message",
    [
        (([b"a"],), "`key` must return a str or a list of str"),
        (([(1, "a")],), "`key` must return a str or a list of str"),
        (([["a", 1]],), "`key` must return"),
        ((["a"], len), "`key` must return.* Received: 1"),
        ((["a"], "source"), "`key` must be a callable"),
    ],
)
def test_records_without_a_text_raise(arguments, message):
    with pytest.raises(ValueError, match=message):
        split_by_hash(*arguments)


@pytest.mark.parametrize("parts", [2, 20.0, True])
def test_invalid_parts_raise(parts):
    with pytest.raises(ValueError, match=r"`parts` must be .* Received: "):
        split_by_hash(["a"], parts=parts)
