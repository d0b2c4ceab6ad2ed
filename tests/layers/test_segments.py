"""Packed sequences give the same outputs as separate ones."""

import numpy as np
import pytest
from keras import ops

from keras_attn.layers import MultiHeadAttention
from tests.helpers import reference
from tests.helpers.contract import check_layer
from tests.helpers.ops_cases import assert_close, assert_differs, normal, values
from tests.helpers.weight_gradients import layer_gradients, weighted_sum
from tests.layers.position_cases import POSITIONS, B, D, H, N, T, X, make

NAMES = [None, *POSITIONS]
every_position = pytest.mark.parametrize("name", NAMES)
SEGMENTS = np.int32([[1, 1, 3, 3, 2, 2], [0, 0, 0, 7, 7, 7]])
# The second row is left-padded and has a gap in its last sequence.
MASK = np.array([[1, 1, 1, 1, 1, 1], [0, 1, 1, 1, 0, 1]], "bool")
UPSTREAM = normal(B, T, D, seed=5) * MASK[..., None]


def sequences(mask=MASK, segments=SEGMENTS):
    """Yields the row and indices of each sequence."""
    for row, ids in enumerate(segments):
        for segment in dict.fromkeys(ids[mask[row]]):
            yield row, np.flatnonzero(mask[row] & (ids == segment))


def packed(layer, x=X, segments=SEGMENTS, mask=MASK):
    segments, mask = (ops.convert_to_tensor(a) for a in (segments, mask))
    return layer(
        x,
        x,
        query_mask=mask,
        value_mask=mask,
        query_segment_ids=segments,
        key_segment_ids=segments,
    )


@every_position
@pytest.mark.parametrize(("causal", "window"), [(False, None), (True, 2)])
def test_packed_equals_separate(name, causal, window):
    layer = make(name, causal=causal, sliding_window=window)
    poisoned = np.where(MASK[..., None], X, np.nan).astype("float32")
    output = values(packed(layer, poisoned))
    for row, slots in sequences():
        sequence = X[row : row + 1, slots]
        alone = values(layer(sequence, sequence))
        assert_close(output[row : row + 1, slots], alone)
    assert (output[~MASK] == 0).all()


# Wrong segments that must change the output.
MUTANTS = {
    "one sequence": np.zeros_like(SEGMENTS),
    "shifted by one": np.roll(SEGMENTS, 1, axis=1),
    "of the other row": SEGMENTS[::-1],
}


@pytest.mark.parametrize("mutant", MUTANTS)
@pytest.mark.parametrize("name", [None, "rotary", "t5"])
def test_wrong_segments_change_outputs(name, mutant):
    layer = make(name)
    mask = np.ones_like(MASK)
    output = values(packed(layer, mask=mask))
    wrong = values(packed(layer, segments=MUTANTS[mutant], mask=mask))
    assert_differs(output[0], wrong[0])
    assert_differs(output[1], wrong[1])


@pytest.mark.every_backend
@pytest.mark.parametrize("name", [None, "rotary", "t5"])
def test_packed_gradients_equal_separate_gradients(name):
    layer = make(name, causal=True)

    def loss(x):
        return weighted_sum(packed(layer, x), UPSTREAM)

    (at_x,), at_weights = layer_gradients(layer, loss, X)
    total = {key: np.zeros_like(array) for key, array in at_weights.items()}
    for row, slots in sequences():
        upstream = UPSTREAM[row : row + 1, slots]

        def alone(x, upstream=upstream):
            return weighted_sum(layer(x, x), upstream)

        sequence = X[row : row + 1, slots]
        (expected,), parts = layer_gradients(layer, alone, sequence)
        assert_close(at_x[row : row + 1, slots], expected)
        for key, array in parts.items():
            total[key] += array
    for key, array in at_weights.items():
        assert_close(array, total[key])
    assert (at_x[~MASK] == 0).all()


@every_position
def test_cross_attention_between_packed_batches(name):
    """Sequences of different lengths, one without a match."""
    layer = make(name, D + 1)
    memory = normal(B, 5, D + 1, seed=2)
    memory_segments = np.int32([[2, 2, 1, 1, 1], [0, 7, 7, 7, 0]])
    output = values(
        layer(
            X,
            memory,
            query_segment_ids=SEGMENTS,
            key_segment_ids=memory_segments,
        )
    )
    no_padding = np.ones_like(MASK)
    for row, slots in sequences(no_padding):
        segment = SEGMENTS[row, slots[0]]
        matching = np.flatnonzero(memory_segments[row] == segment)
        if not matching.size:
            assert (output[row, slots] == 0).all()
        elif segment:
            alone = values(
                layer(X[row : row + 1, slots], memory[row : row + 1, matching])
            )
            assert_close(output[row : row + 1, slots], alone)
    assert (output[0, 2:4] == 0).all()


@pytest.mark.every_backend
def test_visibility_equals_the_reference():
    layer = make(None)
    output = layer(X, X, query_segment_ids=SEGMENTS, key_segment_ids=SEGMENTS)
    expected, _ = reference.multi_head_attention(
        X,
        X,
        layer.get_weights(),
        mask=reference.visible(
            B, T, T, query_segment_ids=SEGMENTS, key_segment_ids=SEGMENTS
        ),
    )
    assert_close(values(output), expected)


def test_segments_with_one_attention_axis_of_several():
    layer = MultiHeadAttention(N, H, attention_axes=(2,))
    x = normal(1, 2, T, D, seed=4)
    segments = SEGMENTS[None]
    output = layer(x, x, query_segment_ids=segments, key_segment_ids=segments)
    rows = MultiHeadAttention(N, H)
    rows.build((None, None, D), (None, None, D))
    rows.set_weights(layer.get_weights())
    expected = rows(
        x[0], x[0], query_segment_ids=SEGMENTS, key_segment_ids=SEGMENTS
    )
    assert_close(values(output)[0], values(expected))


def test_contract():
    check_layer(
        lambda **kwargs: MultiHeadAttention(
            N, H, attention_position=POSITIONS["t5"](), **kwargs
        ),
        (X, X),
        {
            "query_segment_ids": SEGMENTS,
            "key_segment_ids": SEGMENTS,
            "use_causal_mask": True,
        },
    )


@pytest.mark.parametrize(
    ("kwargs", "message"),
    [
        ({"query_segment_ids": SEGMENTS}, "together.*key_segment_ids=None"),
        (
            {"query_segment_ids": X[..., 0], "key_segment_ids": SEGMENTS},
            "`query_segment_ids` must hold integers",
        ),
        (
            {"query_segment_ids": SEGMENTS, "key_segment_ids": SEGMENTS[:, :3]},
            "`key_segment_ids` must have the shape of its tensor",
        ),
    ],
)
def test_invalid_segments_raise(kwargs, message):
    with pytest.raises(ValueError, match=message):
        make(None)(X, X, **kwargs)
