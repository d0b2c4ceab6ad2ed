"""Blockwise kernel: blocks, spans, position biases, dropout."""

import keras
import numpy as np
import pytest
from keras import ops

from keras_attn.backend import inspection
from keras_attn.ops import (
    PositionBias,
    Visibility,
    WeightDropout,
    attend,
    attention_plan,
)
from keras_attn.ops.block_rule import (
    block_metadata,
    block_spans,
    static_block_spans,
)
from keras_attn.ops.visibility import make_visibility
from tests.helpers import reference
from tests.helpers.gradients import gradient
from tests.helpers.ops_cases import (
    BATCH,
    CASES,
    HEADS,
    LENGTH,
    assert_close,
    assert_differs,
    inputs,
    normal,
    spread,
    values,
    visibility,
)

SEED = np.uint32([3, 4])


def tensors(arrays):
    return [ops.convert_to_tensor(array) for array in arrays]


@pytest.mark.parametrize("name", CASES)
def test_skipped_blocks_are_fully_masked(name):
    case = CASES[name]
    metadata = block_metadata(visibility(case), LENGTH, LENGTH, 1, 1)
    mask = np.zeros((BATCH, HEADS, LENGTH + 1, LENGTH + 1), "bool")
    mask[..., :LENGTH, :LENGTH] = spread(case)
    needed = mask.reshape(BATCH, HEADS, 3, 2, 3, 2).any((0, 1, 3, 5))
    for spans, see in zip(
        block_spans(metadata, 2, 2), (needed, needed.T), strict=True
    ):
        spans = ops.convert_to_numpy(spans)
        for (first, last), row in zip(spans, see, strict=True):
            inside = np.zeros(3, "bool")
            inside[first:last] = True
            assert not (row & ~inside).any()


@pytest.mark.parametrize("name", CASES)
def test_statically_skipped_blocks_are_fully_masked(name):
    see = visibility(CASES[name])
    mask = np.zeros((BATCH, HEADS, LENGTH + 1, LENGTH + 1), "bool")
    mask[..., :LENGTH, :LENGTH] = spread(CASES[name])
    needed = mask.reshape(BATCH, HEADS, 3, 2, 3, 2).any((0, 1, 3, 5))
    spans = static_block_spans(see, LENGTH + 1, LENGTH + 1, 2, 2)
    assert len(spans) == 3
    for (first, last), row in zip(spans, needed, strict=True):
        assert not (row[:first].any() or row[last:].any())


def test_static_spans():
    def spans(see, queries=8, keys=8):
        return static_block_spans(see, queries, keys, 2, 2)

    everything, lower = [(0, 4)] * 4, [(0, 1), (0, 2), (0, 3), (0, 4)]
    band = [(0, 1), (0, 2), (1, 3), (2, 4)]
    assert list(spans(Visibility())) == everything
    assert list(spans(Visibility(causal=True))) == lower
    assert list(spans(Visibility(causal=True, window=2))) == band
    both = Visibility(window=2)
    assert list(spans(both)) == [(0, 2), (0, 3), (1, 4), (2, 4)]
    # Four earlier keys, such as those of a memory.
    later = Visibility(causal=True, window=3, offset=4)
    assert list(spans(later, 4, 8)) == [(1, 3), (2, 4)]
    padded = ops.convert_to_tensor(np.ones((1, 8), "bool"))
    masked = make_visibility(
        8, 8, query_mask=padded, key_mask=padded, causal=True, window=2
    )
    # The order is that of the slots, but distances count tokens.
    assert list(spans(masked)) == lower
    right = Visibility(
        query_positions=masked.query_positions,
        key_positions=masked.key_positions,
        padding="right",
        causal=True,
        window=2,
    )
    assert list(spans(right)) == band


@pytest.mark.every_backend
@pytest.mark.parametrize("name", ["causal", "holes", "causal, left padding"])
def test_positions_that_cannot_be_read(name, monkeypatch):
    arrays, case = inputs(key_heads=2), CASES[name]
    expected, _ = reference.scaled_dot_attention(*arrays, spread(case))
    monkeypatch.setattr(inspection, "is_on_host", lambda tensor: False)
    monkeypatch.setattr("keras_attn.ops.blockwise.BLOCK", 2)
    see = visibility(case)
    output = values(attend(*tensors(arrays), see, kernel="blockwise"))
    assert_close(output, expected)


def test_window_skips_blocks():
    metadata = block_metadata(Visibility(causal=True, window=8), 64, 64)
    query, key = (ops.convert_to_numpy(x) for x in block_spans(metadata, 4, 4))
    assert (query[:, 1] - query[:, 0]).max() == 3
    assert query[10].tolist() == [8, 11]
    assert key[10].tolist() == [10, 13]
    both = block_metadata(Visibility(window=8), 64, 64)
    query, _ = (ops.convert_to_numpy(x) for x in block_spans(both, 4, 4))
    assert query[10].tolist() == [8, 13]


def test_padding_blocks_are_skipped():
    positions = np.full((2, 8), -1, "int32")
    positions[:, 5:] = np.arange(3)
    positions = ops.convert_to_tensor(positions)
    see = Visibility(query_positions=positions, key_positions=positions)
    query, _ = block_spans(block_metadata(see, 8, 8), 2, 2)
    expected = [[0, 0], [0, 0], [2, 4], [2, 4]]
    assert ops.convert_to_numpy(query).tolist() == expected


@pytest.mark.every_backend
@pytest.mark.parametrize("length", [1, 2, 3, 7, 8])
def test_every_length(length):
    arrays = inputs(queries=length, keys=9 - length, key_heads=2)
    see = Visibility(window=3)
    mask = reference.visible(BATCH, length, 9 - length, heads=HEADS, window=3)
    output = values(attend(*tensors(arrays), see, kernel="blockwise"))
    assert_close(output, reference.scaled_dot_attention(*arrays, mask)[0])


def near(slopes, query, key):
    gap = ops.abs(query[:, None, :, None] - key[:, None, None, :])
    return -ops.reshape(slopes, (1, -1, 1, 1)) * ops.cast(gap, slopes.dtype)


@pytest.mark.every_backend
@pytest.mark.parametrize("kernel", ["plain", "blockwise"])
@pytest.mark.parametrize("name", ["causal", "holes", "causal, left padding"])
def test_position_bias_and_gradient(name, kernel):
    case, arrays = CASES[name], inputs(key_heads=2)
    slopes = normal(HEADS, seed=6)
    cotangent = normal(BATCH, LENGTH, HEADS, 6, seed=9)
    see = visibility(case)

    def mixed(query, key, value, slopes):
        bias = PositionBias(near, slopes)
        return attend(query, key, value, see, bias=bias, kernel=kernel)

    def loss(*arrays):
        return ops.sum(ops.multiply(mixed(*arrays), cotangent))

    default = np.arange(LENGTH)[None]
    query_at = case.get("query_positions", default)
    key_at = case.get("key_positions", default)
    gap = np.abs(query_at[:, None, :, None] - key_at[:, None, None, :])
    gap = np.broadcast_to(gap, (BATCH, 1, LENGTH, LENGTH))
    bias = -slopes[None, :, None, None] * gap
    expected, _ = reference.scaled_dot_attention(*arrays, spread(case), bias)
    assert_close(values(mixed(*tensors((*arrays, slopes)))), expected)
    expected = list(
        reference.scaled_dot_attention_gradients(
            *arrays, cotangent, spread(case), bias
        )
    )
    expected[3] = -(expected[3] * gap).sum((0, 2, 3))
    for one, other in zip(
        gradient(loss, *arrays, slopes), expected, strict=True
    ):
        assert_close(one, other)


@pytest.mark.every_backend
def test_position_bias_without_parameters():
    arrays = inputs()
    bias = PositionBias(lambda _, query, key: near(ops.ones(HEADS), query, key))
    plain = values(attend(*tensors(arrays), bias=bias, kernel="plain"))
    blockwise = values(attend(*tensors(arrays), bias=bias, kernel="blockwise"))
    assert_close(blockwise, plain)
    assert_differs(plain, values(attend(*tensors(arrays))))


def dropped(see, arrays, rate=0.4, seed=SEED, kernel="blockwise"):
    dropout = WeightDropout(rate, ops.convert_to_tensor(seed))
    return attend(*arrays, see, dropout=dropout, kernel=kernel)


def kept(case, length, rate=0.4, seed=SEED):
    """Returns the weights after dropout, by attending to unit vectors."""
    query = np.zeros((BATCH, length, HEADS, 4), "float32")
    unit = np.eye(length, dtype="float32")
    value = np.broadcast_to(unit[None, :, None], (BATCH, length, HEADS, length))
    output = dropped(
        visibility(case), tensors((query, query, value)), rate, seed
    )
    return values(output).transpose(0, 2, 1, 3)


@pytest.mark.every_backend
@pytest.mark.parametrize("name", ["causal", "holes", "window"])
def test_dropout_on_weights_and_gradient(name):
    case, arrays = CASES[name], inputs(key_heads=2)
    weights = kept(case, LENGTH)
    mask = spread(case)
    uniform = mask / np.maximum(mask.sum(-1, keepdims=True), 1)
    factor = np.where(mask, weights / np.where(uniform, uniform, 1), 0)
    assert sorted(set(np.round(factor[mask].tolist(), 3))) == [0.0, 1.667]
    see = visibility(case)
    _, undropped = reference.scaled_dot_attention(*arrays, mask)
    spread_value = np.repeat(arrays[2], 2, axis=2).astype("float64")
    expected = np.einsum("bnts,bsnw->btnw", undropped * factor, spread_value)
    assert_close(values(dropped(see, tensors(arrays))), expected, 1e-4)
    assert_close(
        gradient(lambda *x: ops.sum(dropped(see, x) ** 2), *arrays)[0],
        differences(arrays, mask, factor),
        2e-3,
    )


def differences(arrays, mask, factor, step=1e-5):
    """Returns the query gradient of sum(output^2), by finite differences."""

    def loss(query):
        _, weights = reference.scaled_dot_attention(
            query, *(array.astype("float64") for array in arrays[1:]), mask
        )
        value = np.repeat(arrays[2], 2, axis=2).astype("float64")
        output = np.einsum("bnts,bsnw->btnw", weights * factor, value)
        return (output**2).sum()

    query = arrays[0].astype("float64")
    slope = np.zeros(query.shape)
    for index in np.ndindex(query.shape):
        for sign in (1, -1):
            moved = query.copy()
            moved[index] += sign * step
            slope[index] += sign * loss(moved) / (2 * step)
    return slope


def test_dropout_is_deterministic_and_has_its_rate():
    length = 48
    first = kept({}, length, rate=0.25)
    assert (first == kept({}, length, rate=0.25)).all()
    other = kept({}, length, rate=0.25, seed=SEED + 1)
    assert 0.3 < ((first == 0) != (other == 0)).mean() < 0.45
    rate = (first == 0).mean()
    deviation = (0.25 * 0.75 / first.size) ** 0.5
    assert abs(rate - 0.25) < 4 * deviation
    # Blocks, rows and heads are dropped independently.
    zero = first == 0
    blocks = zero.reshape(BATCH, HEADS, 24, 2, 24, 2).transpose(
        2, 4, 0, 1, 3, 5
    )
    patterns = {block.tobytes() for block in blocks.reshape(24 * 24, -1)}
    assert len(patterns) > 500


@pytest.mark.every_backend
def test_training_with_fit():
    layer = keras.layers.Dense(4)
    target = normal(2, 6, 4, seed=2)

    class Model(keras.Model):
        def __init__(self):
            super().__init__()
            self.inner = layer

        def call(self, x):
            x = ops.reshape(self.inner(x), (-1, 6, 2, 2))
            y = attend(x, x, x, Visibility(causal=True), kernel="blockwise")
            return ops.reshape(y, (-1, 6, 4))

    model = Model()
    model.compile("adam", "mse")
    history = model.fit(
        normal(2, 6, 4), target, epochs=15, verbose=0, batch_size=2
    )
    assert history.history["loss"][-1] < history.history["loss"][0]


def test_blockwise_can_be_forced():
    x = ops.ones((1, 3, 1, 4))
    chosen = attention_plan(x, x, Visibility(), kernel="blockwise")
    assert chosen.kernel == "blockwise"


def test_unhashable_bias_function_raises():
    class Near(list):
        def __call__(self, _, query, key):
            raise AssertionError("never called")

    x = ops.ones((1, 4, 1, 2))
    with pytest.raises(ValueError, match=r"`bias\.function` must be hashable"):
        attend(x, x, x, bias=PositionBias(Near()), kernel="blockwise")


@pytest.mark.parametrize("rate", [0.0, 1.0, -0.1])
def test_rate_out_of_range_raises(rate):
    with pytest.raises(ValueError, match="`rate` must be between 0 and 1"):
        WeightDropout(rate, None)
