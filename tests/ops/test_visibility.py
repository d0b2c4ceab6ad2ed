"""`Visibility` against a loop over queries and keys."""

import dataclasses

import hypothesis
import keras
import numpy as np
import pytest
from hypothesis import strategies as st
from keras import ops

from keras_attn.ops import Visibility
from keras_attn.ops.visibility import (
    has_visible_key,
    implicit_mask,
    is_key_padding_only,
    make_visibility,
)
from tests.helpers import reference
from tests.helpers.ops_cases import (
    BATCH,
    CASES,
    HEADS,
    LENGTH,
    MUTANTS,
    mutants,
    spread,
    visibility,
)

TRUE = True, False


def spread_out(see, lengths=(LENGTH, LENGTH), batch=BATCH, heads=HEADS):
    mask = see.to_mask(*lengths)
    mask = True if mask is None else ops.convert_to_numpy(mask)
    return np.broadcast_to(mask, (batch, heads, *lengths))


@pytest.mark.parametrize("name", CASES)
def test_follows_the_rule(name):
    mask = spread_out(visibility(CASES[name]))
    np.testing.assert_array_equal(mask, spread(CASES[name]))


@pytest.mark.parametrize(("name", "how"), MUTANTS)
def test_mutants_of_the_rule_differ(name, how):
    mask = spread_out(visibility(CASES[name]))
    assert not np.array_equal(mask, spread(mutants(CASES[name])[how]))


@pytest.mark.parametrize("name", CASES)
def test_has_visible_key(name):
    seen = has_visible_key(visibility(CASES[name]), LENGTH, LENGTH)
    seen = True if seen is None else ops.convert_to_numpy(seen)
    expected = spread(CASES[name]).any(axis=(1, 3))
    np.testing.assert_array_equal(
        np.broadcast_to(seen, (BATCH, LENGTH)), expected
    )


def test_some_cases_have_fully_masked_rows():
    fully_masked = [
        name
        for name, case in CASES.items()
        if not spread(case).any(axis=(1, 3)).all()
    ]
    assert len(fully_masked) > 5
    assert "two orders" in fully_masked
    assert "strictly causal" in fully_masked


@pytest.mark.parametrize("case", [{}, {"causal": True}, {"window": 9}])
def test_different_lengths(case):
    see = visibility(case)
    np.testing.assert_array_equal(
        spread_out(see, (3, 5)), spread(case, lengths=(3, 5))
    )
    seen = has_visible_key(see, 3, 5)
    assert seen is None or bool(ops.all(seen))


def test_window_can_mask_every_key():
    see = Visibility(window=1)
    seen = ops.convert_to_numpy(has_visible_key(see, 5, 3))
    np.testing.assert_array_equal(seen, [[True] * 3 + [False] * 2])


def test_no_mask_if_nothing_is_masked():
    assert Visibility().to_mask(3, 4) is None
    assert has_visible_key(Visibility(), 3, 4) is None
    assert has_visible_key(Visibility(causal=True), 3, 3) is None
    assert has_visible_key(Visibility(causal=True, window=1), 3, 3) is None


@pytest.mark.parametrize("name", CASES)
def test_is_key_padding_only(name):
    see = visibility(CASES[name])
    if is_key_padding_only(see):
        mask = spread(CASES[name])
        np.testing.assert_array_equal(
            mask, np.broadcast_to(mask[:, :, :1], mask.shape)
        )
    found = [
        name for name in CASES if is_key_padding_only(visibility(CASES[name]))
    ]
    assert 0 < len(found) < len(CASES)


def test_is_frozen():
    with pytest.raises(dataclasses.FrozenInstanceError):
        Visibility().causal = True


def test_mask_is_converted_to_positions():
    mask = np.array([[False, True, True, False, True], [True] * 5])
    see = make_visibility(3, 5, key_mask=ops.convert_to_tensor(mask))
    assert see.query_positions is None
    np.testing.assert_array_equal(
        ops.convert_to_numpy(see.key_positions),
        [[-1, 0, 1, -1, 2], [0, 1, 2, 3, 4]],
    )
    assert see.padding == "any"


def test_shared_mask_counts_tokens():
    mask = ops.convert_to_tensor([[False, True, False, True, True]])
    see = make_visibility(5, 5, query_mask=mask, key_mask=mask, window=2)
    # The tokens are adjacent, although there is a slot between them.
    assert spread_out(see, batch=1)[0, 0, 1].tolist() == [
        *(False, True, False, True, False)
    ]


def test_different_masks_count_slots():
    first = ops.convert_to_tensor([[True, True, True, True, True]])
    second = ops.convert_to_tensor([[False, False, True, True, True]])
    see = make_visibility(5, 5, query_mask=first, key_mask=second, causal=True)
    expected = np.tril(np.ones((5, 5), "bool"))
    expected[:, :2] = False
    np.testing.assert_array_equal(spread_out(see, batch=1)[0, 0], expected)


def test_explicit_positions_are_used_and_masks_still_apply():
    mask = ops.convert_to_tensor([[True, True, True, False]])
    positions = ops.convert_to_tensor(np.int32([[7, 5, -1, 6]]))
    see = make_visibility(
        1,
        4,
        key_mask=mask,
        key_positions=positions,
        query_positions=ops.convert_to_tensor(np.int32([[6]])),
        causal=True,
    )
    np.testing.assert_array_equal(
        ops.convert_to_numpy(see.key_positions), [[7, 5, -1, -1]]
    )
    np.testing.assert_array_equal(
        spread_out(see, (1, 4), batch=1)[0, 0], [[False, True, False, False]]
    )


@pytest.mark.parametrize("dtype", ["bool", "int32", "float32"])
@pytest.mark.parametrize("axes", ["ts", "bts", "bnts"])
def test_attention_mask_ranks(axes, dtype):
    shape = [
        {"b": BATCH, "n": HEADS, "t": 3, "s": LENGTH}[axis] for axis in axes
    ]
    mask = np.random.default_rng(0).random(shape) < 0.5
    see = make_visibility(3, LENGTH, attention_mask=ops.cast(mask, dtype))
    if axes == "bts":
        mask = mask[:, None]
    expected = np.broadcast_to(mask, (BATCH, HEADS, 3, LENGTH))
    np.testing.assert_array_equal(spread_out(see, (3, LENGTH)), expected)


@pytest.mark.parametrize("rank", [1, 5])
def test_other_attention_mask_ranks_raise(rank):
    with pytest.raises(ValueError, match="`attention_mask`"):
        make_visibility(2, 2, attention_mask=ops.ones((2,) * rank, "bool"))


def test_implicit_mask_stays_on_tensor():
    vectors = keras.layers.Embedding(5, 4, mask_zero=True)(
        ops.convert_to_tensor(np.int32([[1, 0]]))
    )
    mask = implicit_mask(vectors)
    np.testing.assert_array_equal(ops.convert_to_numpy(mask), [[True, False]])
    assert implicit_mask(vectors) is mask
    assert implicit_mask(ops.ones((1, 2))) is None


def masks():
    row = st.lists(st.booleans(), min_size=4, max_size=4)
    return st.lists(row, min_size=2, max_size=2).map(np.array)


@hypothesis.settings(max_examples=20)
@hypothesis.given(
    masks(),
    st.one_of(st.none(), masks()),
    st.booleans(),
    st.sampled_from([None, 1, 2, 9]),
    st.sampled_from(TRUE),
)
def test_masks_follow_keras_semantics(
    mask, other, causal, window, self_attention
):
    """Against a loop over tokens and slots."""
    tensor = ops.convert_to_tensor(mask)
    given = {"query_mask": tensor}
    key_mask = mask
    if self_attention:
        given["key_mask"] = tensor
    else:
        key_mask = np.ones_like(mask) if other is None else other
        if other is not None:
            given["key_mask"] = ops.convert_to_tensor(other)
    see = make_visibility(4, 4, causal=causal, window=window, **given)
    query_at = key_at = np.broadcast_to(np.arange(4), (2, 4))
    if self_attention:
        query_at = key_at = reference.positions_from_mask(mask)
    expected = np.zeros((2, HEADS, 4, 4), "bool")
    for b, n, t, s in np.ndindex(*expected.shape):
        distance = abs(query_at[b, t] - key_at[b, s])
        expected[b, n, t, s] = (
            mask[b, t]
            and key_mask[b, s]
            and (not causal or s <= t)
            and (window is None or distance < window)
        )
    np.testing.assert_array_equal(spread_out(see, (4, 4)), expected)
    seen = has_visible_key(see, 4, 4)
    seen = True if seen is None else ops.convert_to_numpy(seen)
    np.testing.assert_array_equal(
        np.broadcast_to(seen, (2, 4)), expected.any(axis=(1, 3))
    )


SEGMENTS = np.int32([[1, 1, 2, 2, 2], [3, 3, 3, 3, 4]])
RESTARTING = [[0, 1, 0, 1, 2], [0, 1, 2, 3, 0]]


@pytest.mark.parametrize("causal", TRUE)
def test_positions_restart_in_segments(causal):
    segments = ops.convert_to_tensor(SEGMENTS)
    see = make_visibility(
        5,
        5,
        query_segment_ids=segments,
        key_segment_ids=segments,
        causal=causal,
    )
    assert see.query_positions is see.key_positions
    positions = ops.convert_to_numpy(see.query_positions)
    np.testing.assert_array_equal(positions, RESTARTING)
    expected = reference.visible(
        2,
        5,
        5,
        query_segment_ids=SEGMENTS,
        key_segment_ids=SEGMENTS,
        causal=causal,
        heads=HEADS,
    )
    np.testing.assert_array_equal(spread_out(see), expected)


def test_segments_and_a_mask():
    """Left padding, and padding inside the second sentence."""
    mask = np.array([[0, 1, 1, 0, 1], [1, 1, 1, 1, 1]], "bool")
    segments, mask = (ops.convert_to_tensor(x) for x in (SEGMENTS, mask))
    see = make_visibility(
        5,
        5,
        query_mask=mask,
        key_mask=mask,
        query_segment_ids=segments,
        key_segment_ids=segments,
        window=2,
    )
    np.testing.assert_array_equal(
        ops.convert_to_numpy(see.key_positions),
        [[-1, 0, 0, -1, 1], RESTARTING[1]],
    )
    assert spread_out(see)[0, 0].tolist() == [
        [False, False, False, False, False],
        [False, True, False, False, False],
        [False, False, True, False, True],
        [False, False, False, False, False],
        [False, False, True, False, True],
    ]


@pytest.mark.parametrize("relative", TRUE)
def test_two_masks_and_segments(relative):
    """If the distance matters, both sides count slots of the sentence."""
    mask = np.array([[0, 1, 1, 0, 1], [1, 1, 1, 1, 1]], "bool")
    segments = ops.convert_to_tensor(SEGMENTS)
    see = make_visibility(
        5,
        5,
        key_mask=ops.convert_to_tensor(mask),
        query_segment_ids=segments,
        key_segment_ids=segments,
        relative=relative,
    )
    queries = ops.convert_to_numpy(see.query_positions)
    np.testing.assert_array_equal(queries, RESTARTING)
    keys = ops.convert_to_numpy(see.key_positions)[0].tolist()
    assert keys == ([-1, 1, 0, -1, 2] if relative else [-1, 0, 0, -1, 1])


@pytest.mark.parametrize("causal", TRUE)
def test_unmatched_segments_are_fully_masked(causal):
    positions, queries, keys = (
        ops.convert_to_tensor(x)
        for x in (np.int32(RESTARTING), SEGMENTS, SEGMENTS[::-1])
    )
    see = Visibility(
        query_positions=positions,
        key_positions=positions,
        query_segment_ids=queries,
        key_segment_ids=keys,
        causal=causal,
    )
    seen = ops.convert_to_numpy(has_visible_key(see, 5, 5))
    assert not seen.any()


def test_explicit_positions_override_segments():
    segments, given = (
        ops.convert_to_tensor(x) for x in (SEGMENTS, SEGMENTS + 7)
    )
    see = make_visibility(
        5,
        5,
        query_positions=given,
        key_positions=given,
        query_segment_ids=segments,
        key_segment_ids=segments,
    )
    np.testing.assert_array_equal(
        ops.convert_to_numpy(see.query_positions), SEGMENTS + 7
    )


@pytest.mark.parametrize("side", ["query", "key"])
def test_segments_on_one_side_raise(side):
    other = {"query": "key", "key": "query"}[side]
    with pytest.raises(ValueError, match=f"together.*{other}_segment_ids=None"):
        make_visibility(
            5, 5, **{f"{side}_segment_ids": ops.convert_to_tensor(SEGMENTS)}
        )


def test_relative_distance_counts_slots():
    mask = ops.convert_to_tensor([[False, True, True]])
    see = make_visibility(3, 3, key_mask=mask, relative=True)
    assert see.query_positions is None
    keys = ops.convert_to_numpy(see.key_positions)
    assert keys.tolist() == [[-1, 1, 2]]
