"""mask_tokens: masking rates, special tokens and whole words."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from keras_attn.text import mask_tokens

pytestmark = pytest.mark.one_backend

SIZE, MASK = 50, 4
SPECIAL = (0, 1, 2, 3, 4)
CONTINUES = np.arange(SIZE) >= 30


def rows(count=400, length=40, seed=0):
    """Rows of words between ids 2 and 3, padded on the right."""
    random = np.random.default_rng(seed)
    ids = random.integers(5, SIZE, (count, length)).astype("int32")
    ids[:, 0] = 2
    for row, end in zip(ids, random.integers(3, length, count), strict=True):
        row[end] = 3
        row[end + 1 :] = 0
    return ids


def mask(ids, **kwargs):
    settings = {"mask_id": MASK, "special_ids": SPECIAL, "seed": 1}
    return mask_tokens(ids, SIZE, **(settings | kwargs))


def chosen_of(masked, shape):
    chosen = np.zeros(shape, bool)
    for row, positions, labels in zip(
        chosen, masked.positions, masked.labels, strict=True
    ):
        row[positions[labels >= 0]] = True
    return chosen


def probable(count, total, rate):
    """Whether a count is consistent with a rate (p-value above 1e-6)."""
    return stats.binomtest(count, total, rate).pvalue > 1e-6


def test_mask_rate_and_replacement_rates():
    ids = rows(4000)
    masked = mask(ids)
    chosen = chosen_of(masked, ids.shape)
    real = ~np.isin(ids, SPECIAL)
    lengths = real.sum(axis=1)
    assert not (chosen & ~real).any()
    expected = np.maximum(np.floor(0.15 * lengths + 0.5), lengths > 0)
    np.testing.assert_array_equal(chosen.sum(axis=1), expected)
    total = chosen.sum()
    became = masked.token_ids[chosen]
    assert probable((became == MASK).sum(), total, 0.8)
    # A random token, which is the original one in 1 of 45 cases.
    other = (became != MASK) & (became != ids[chosen])
    assert probable(other.sum(), total, 0.1 * 44 / 45)
    assert not np.isin(became[other], SPECIAL).any()
    drawn = np.bincount(became[other], minlength=SIZE)[5:]
    assert stats.chisquare(drawn).pvalue > 1e-6
    # All positions of a row are equally likely.
    full = lengths == lengths.max()
    counts = chosen[full].sum(axis=0)[1 : 1 + lengths.max()]
    assert stats.chisquare(counts).pvalue > 1e-6


def test_unmasked_tokens_are_unchanged():
    ids = rows()
    masked = mask(ids)
    chosen = chosen_of(masked, ids.shape)
    np.testing.assert_array_equal(masked.token_ids[~chosen], ids[~chosen])
    for row, positions, labels in zip(
        ids, masked.positions, masked.labels, strict=True
    ):
        count = (labels >= 0).sum()
        np.testing.assert_array_equal(row[positions[:count]], labels[:count])
        assert (np.diff(positions[:count]) > 0).all()
        assert not positions[count:].any() and (labels[count:] == -1).all()
    assert masked.token_ids.dtype == masked.labels.dtype == np.int32
    assert masked.positions.shape == masked.labels.shape == (400, 6)


def test_whole_words_are_masked():
    ids = rows(2000)
    masked = mask(ids, continuations=CONTINUES)
    chosen = chosen_of(masked, ids.shape)
    words = split = 0
    for row, taken in zip(ids, chosen, strict=True):
        pieces = []
        for position, token in enumerate(row):
            if token in SPECIAL:
                pieces.append(None)
            elif CONTINUES[token] and pieces and pieces[-1] is not None:
                pieces[-1].append(position)
                pieces.append(pieces[-1])
            else:
                pieces.append([position])
        for word in {id(w): w for w in pieces if w is not None}.values():
            words += 1
            split += len(set(taken[word])) > 1
    assert words > 10_000 and split == 0
    real = ~np.isin(ids, SPECIAL)
    limit = np.maximum(np.floor(0.15 * real.sum(1) + 0.5), real.any(1))
    assert (chosen.sum(axis=1) <= limit).all()
    assert chosen.sum() > 0.9 * limit.sum()


def test_the_seed_determines_the_masks():
    ids = rows(20)
    one, other = mask(ids, seed=3), mask(ids, seed=3)
    for a, b in zip(one, other, strict=True):
        np.testing.assert_array_equal(a, b)
    assert (mask(ids, seed=4).token_ids != one.token_ids).any()
    random = np.random.default_rng(3)
    np.testing.assert_array_equal(
        mask(ids, seed=random).token_ids, one.token_ids
    )
    assert (mask(ids, seed=random).token_ids != one.token_ids).any()


@settings(max_examples=60, deadline=None)
@given(
    count=st.integers(1, 4),
    length=st.integers(1, 12),
    rate=st.floats(0.01, 0.99),
    most=st.none() | st.integers(1, 5),
    whole=st.booleans(),
    seed=st.integers(0, 2**32),
)
def test_any_shape(count, length, rate, most, whole, seed):
    random = np.random.default_rng(seed)
    ids = random.integers(0, SIZE, (count, length))
    masked = mask(
        ids,
        mask_rate=rate,
        max_predictions=most,
        seed=seed,
        continuations=CONTINUES if whole else None,
    )
    chosen = chosen_of(masked, ids.shape)
    assert not (chosen & np.isin(ids, SPECIAL)).any()
    assert chosen.sum() == (masked.labels >= 0).sum()
    restored = masked.token_ids.copy()
    inverse = np.nonzero(masked.labels >= 0)
    restored[inverse[0], masked.positions[inverse]] = masked.labels[inverse]
    np.testing.assert_array_equal(restored, ids)


@pytest.mark.parametrize(
    "kwargs, message",
    [
        ({"token_ids": [1, 2]}, "`token_ids` must be integers of shape"),
        ({"token_ids": [[0.5]]}, "`token_ids` must be integers of shape"),
        ({"token_ids": [[SIZE]]}, r"`token_ids` must lie in \[0, 50\)"),
        ({"mask_id": SIZE}, r"`mask_id` must lie in"),
        ({"special_ids": range(SIZE)}, "must not cover the whole vocabulary"),
        ({"mask_rate": 1.0}, r"`mask_rate` must be a number in \(0, 1\)"),
        ({"max_predictions": 0}, "`max_predictions` must be at least 1"),
        (
            {"continuations": [True]},
            "`continuations` must have one bool per id",
        ),
    ],
)
def test_invalid_arguments_raise(kwargs, message):
    kwargs = {"token_ids": [[5, 6]]} | kwargs
    with pytest.raises(ValueError, match=message):
        mask(kwargs.pop("token_ids"), **kwargs)
