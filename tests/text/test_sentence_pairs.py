"""sentence_pairs: which sentences are paired, and how often they follow."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from keras_attn.text import sentence_pairs
from keras_attn.text.sentence_pairs import cut_pair

pytestmark = pytest.mark.one_backend


def documents(count=60, seed=0):
    """Ids that encode document, sentence and position."""
    random = np.random.default_rng(seed)
    return [
        [
            [10_000 * number + 100 * sentence + index for index in range(size)]
            for sentence, size in enumerate(random.integers(1, 9, length))
        ]
        for number, length in enumerate(random.integers(1, 20, count))
    ]


def test_single_sentences():
    texts = documents()
    pairs = sentence_pairs(texts, seed=1)
    firsts = [s for document in texts for s in document[:-1]]
    assert [pair.first for pair in pairs] == firsts
    follows = 0
    for first, second, truth in pairs:
        number, sentence = divmod(first[0], 10_000)
        other, rest = divmod(second[0], 10_000)
        assert second in texts[other]
        if truth:
            assert (number, sentence // 100 + 1) == (other, rest // 100)
        else:
            assert number != other
        follows += truth
    assert stats.binomtest(follows, len(pairs), 0.5).pvalue > 1e-6


@pytest.mark.parametrize("length", [2, 12, 30])
def test_sentences_that_fill_a_length(length):
    texts = documents()
    flat = [[i for s in document for i in s] for document in texts]
    pairs = sentence_pairs(texts, length, seed=1)
    follows = 0
    for first, second, truth in pairs:
        assert first and second and len(first) + len(second) <= length
        for part in (first, second):
            whole = flat[part[0] // 10_000]
            start = whole.index(part[0])
            assert whole[start : start + len(part)] == part
        same = first[0] // 10_000 == second[0] // 10_000
        assert truth == same
        if truth:
            # Between them are only ids truncated from the end of the first.
            assert second[0] % 100 == 0 and second[0] > first[-1]
        follows += truth
    assert stats.binomtest(follows, len(pairs), 0.5).pvalue > 1e-6
    if length == 30:
        sizes = [len(first) + len(second) for first, second, _ in pairs]
        assert np.mean(sizes) > 15 and len({len(p.first) for p in pairs}) > 9


def test_the_seed_determines_the_pairs():
    texts = documents()
    assert sentence_pairs(texts, 20, 5) == sentence_pairs(texts, 20, 5)
    assert sentence_pairs(texts, 20, 5) != sentence_pairs(texts, 20, 6)
    one, other = (sentence_pairs(texts, 20, (5, draw)) for draw in (0, 1))
    assert one == sentence_pairs(texts, 20, (5, 0)) != other


def test_empty_sentences_and_documents_are_skipped():
    texts = [[], [[5], [], [6]], [[]], [[7]]]
    pairs = sentence_pairs(texts, seed=0)
    assert [pair.first for pair in pairs] == [[5]]
    assert pairs[0].second in ([6], [7])


@given(
    st.lists(st.integers(), max_size=9),
    st.lists(st.integers(), max_size=9),
    st.integers(0, 20),
)
def test_the_longer_side_is_truncated_first(first, second, length):
    expected = list(first), list(second)
    while sum(map(len, expected)) > length:
        # One by one, as in BERT's original code.
        longer = (
            expected[0] if len(expected[0]) > len(expected[1]) else expected[1]
        )
        longer.pop()
    assert cut_pair(first, second, length) == expected


@pytest.mark.parametrize(
    "texts, length, message",
    [
        ([], None, "at least two documents.*Received: 0"),
        ([[[5], [6]]], None, "at least two documents.*Received: 1"),
        ([[[5]], [[6]]], None, "one of them with two sentences"),
        ([[[5], [6]], [[7]]], 1, "`length` must be at least 2"),
        ([[[5], [6]], [[7]]], 0, "`length` must be a positive"),
    ],
)
def test_invalid_arguments_raise(texts, length, message):
    with pytest.raises(ValueError, match=message):
        sentence_pairs(texts, length)
