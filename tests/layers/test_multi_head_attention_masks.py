"""Masks are applied on every path, propagated and never erased."""

import keras
import numpy as np
import pytest
from keras import ops

from keras_attn.layers import MultiHeadAttention
from keras_attn.ops import blockwise, plan
from tests.helpers import reference
from tests.helpers.contract import attach_mask, randomize
from tests.helpers.ops_cases import (
    KERNELS,
    assert_close,
    assert_differs,
    normal,
    values,
)
from tests.helpers.weight_gradients import layer_gradients
from tests.layers.attention_cases import (
    EXPLICIT,
    HOLES,
    KEY,
    LEFT,
    QUERY,
    QUERY_MASK,
    RIGHT,
    VALUE,
    B,
    D,
    N,
    S,
    T,
    make,
)

FLASH = {"plain": False, "fused": True, "blockwise": None}
every_kernel = pytest.mark.parametrize("kernel", KERNELS)


@pytest.fixture(autouse=True)
def select_blockwise_kernel(request, monkeypatch):
    """Selects the blockwise kernel, which no layer argument can force."""
    if getattr(request.node, "callspec", None) is None:
        return
    if request.node.callspec.params.get("kernel") != "blockwise":
        return
    monkeypatch.setattr(plan, "blockwise_pays", lambda *_, **kind: True)
    monkeypatch.setattr(plan, "fused_obstacle", lambda *args, **kwargs: "test")
    monkeypatch.setattr(blockwise, "BLOCK", 2)


PADDINGS = {"right": RIGHT, "left": LEFT, "holes": HOLES}
every_padding = pytest.mark.parametrize("padding", PADDINGS)

# Fully masked rows, for different reasons.
FULLY_MASKED = {
    "no token": ({"query_mask": QUERY_MASK}, QUERY_MASK),
    "no key": ({"value_mask": np.zeros((B, S), "bool")}, np.zeros((B, T))),
    "no key in one sequence": (
        {"key_mask": np.array([[True] * S, [False] * S])},
        np.array([[1] * T, [0] * T]),
    ),
    "mask": (
        {"attention_mask": np.tri(T, S, -1, dtype="bool")},
        np.array([[0, 1, 1, 1]] * B),
    ),
    "mask and padding": (
        {
            "attention_mask": np.eye(T, S, dtype="bool"),
            "value_mask": HOLES,
        },
        HOLES[:, :T],
    ),
    "positions": (
        {
            "query_positions": np.int32([[0, 1, 2, -1], [5, 6, 7, 8]]),
            "key_positions": np.int32([[0, 1, 2, 3, 4], [9, 9, 9, 9, 6]]),
            "use_causal_mask": True,
        },
        np.array([[1, 1, 1, 0], [0, 1, 1, 1]]),
    ),
}


def self_attention(width=D, **kwargs):
    layer = MultiHeadAttention(N, 3, **kwargs)
    layer.build((None, None, width), (None, None, width))
    return randomize(layer)


def masked(array, mask):
    return attach_mask(ops.convert_to_tensor(array), mask)


def mask_of(tensor):
    return getattr(tensor, "_keras_mask", None)


def test_masks_of_the_inputs_are_kept():
    layer = make()
    query, value, key = (
        masked(array, mask)
        for array, mask in ((QUERY, QUERY_MASK), (VALUE, HOLES), (KEY, RIGHT))
    )
    before = [mask_of(x) for x in (query, value, key)]
    first = values(layer(query, value, key))
    assert [mask_of(x) for x in (query, value, key)] == before
    assert None not in before
    assert_close(values(layer(query, value, key)), first, 0)
    explicit = layer(
        QUERY, VALUE, KEY, query_mask=QUERY_MASK, value_mask=HOLES & RIGHT
    )
    assert_close(first, values(explicit))
    assert_differs(first, values(layer(QUERY, VALUE, KEY)))


@every_kernel
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("sides", [("query",), ("value",), ("query", "value")])
def test_token_masked_as_query_or_key_only(sides, causal, kernel):
    """In self-attention, a token may be masked as a query or a key only."""
    layer = self_attention(causal=causal, flash_attention=FLASH[kernel])
    x = ops.convert_to_tensor(normal(B, S, D, seed=3))
    masks = {"query": HOLES, "value": LEFT}
    given = {f"{side}_mask": masks[side] for side in sides}
    output = values(layer(x, x, **given))
    mask = np.ones((B, 1, S, S), "bool")
    if "query" in sides:
        mask = mask & HOLES[:, None, :, None]
    if "value" in sides:
        mask = mask & LEFT[:, None, None]
    if causal:
        mask = mask & np.tri(S, dtype="bool")
    expected, _ = reference.multi_head_attention(
        values(x), values(x), layer.get_weights(), mask=mask
    )
    assert_close(output, expected)
    both = mask & mask.swapaxes(2, 3) & np.eye(S, dtype="bool")
    wrong, _ = reference.multi_head_attention(
        values(x), values(x), layer.get_weights(), mask=both
    )
    assert_differs(output, wrong)


def test_explicit_mask_overrides_the_implicit_one():
    layer = make(key=VALUE)
    output = layer(QUERY, masked(VALUE, HOLES), value_mask=RIGHT)
    assert_close(values(output), values(layer(QUERY, VALUE, value_mask=RIGHT)))
    other = layer(QUERY, VALUE, value_mask=HOLES)
    assert_differs(values(output), values(other))


def test_query_mask_is_propagated():
    layer = make(key=VALUE)
    output = layer(masked(QUERY, QUERY_MASK), masked(VALUE, HOLES))
    np.testing.assert_array_equal(values(mask_of(output)), QUERY_MASK)
    assert mask_of(layer(QUERY, masked(VALUE, HOLES))) is None


def test_memory_shared_by_several_layers():
    """Each layer of a functional model masks the padding of the memory."""
    ids = np.int32([[3, 1, 2, 0, 0], [4, 5, 6, 7, 1]])
    inputs = keras.Input((None,), dtype="int32")
    x = keras.layers.Embedding(8, D, mask_zero=True)(inputs)
    layers = [MultiHeadAttention(N, 3) for _ in range(3)]
    y = layers[0](x, x)
    y = layers[1](y, x)
    y = layers[2](y, x)
    model = randomize(keras.Model(inputs, y))
    padded = values(model(ids))
    alone = values(model(ids[:1, :3]))
    assert_close(padded[:1, :3], alone)
    assert (padded[0, 3:] == 0).all()
    assert_close(values(model.predict(ids, verbose=0)), padded)


@pytest.mark.every_backend
def test_padding_does_not_change_training():
    """Training gives the same weights with and without padding."""

    def trained(ids):
        inputs = keras.Input((None,), dtype="int32")
        x = keras.layers.Embedding(8, D, mask_zero=True)(inputs)
        y = MultiHeadAttention(N, 3, causal=True)(x, x)
        y = keras.layers.GlobalAveragePooling1D()(y)
        model = randomize(keras.Model(inputs, y))
        model.compile(keras.optimizers.SGD(0.1), "mse")
        target = normal(2, D, seed=4)
        model.fit(ids, target, epochs=2, batch_size=2, verbose=0)
        return model.get_weights()

    ids = np.int32([[3, 1, 2], [4, 5, 6]])
    alone = trained(ids)
    padded = trained(np.pad(ids, ((0, 0), (1, 1))))
    for one, other in zip(padded, alone, strict=True):
        assert_close(one, other)


@every_kernel
@pytest.mark.parametrize("name", FULLY_MASKED)
@pytest.mark.parametrize(
    "dtype", ["float32", "mixed_bfloat16", "mixed_float16"]
)
def test_fully_masked_rows_are_zero(name, dtype, kernel):
    """Output and gradients are exactly zero, despite the output bias."""
    call_kwargs, rows = FULLY_MASKED[name]
    rows = np.asarray(rows, "bool")
    layer = make(key=VALUE, dtype=dtype, flash_attention=FLASH[kernel])
    assert np.abs(layer.get_weights()[-1]).min() > 0

    def loss(query, value):
        output = layer(query, value, **call_kwargs)
        return ops.sum(ops.square(ops.cast(output, "float32")))

    output = values(layer(QUERY, VALUE, **call_kwargs))
    assert (output[~rows] == 0).all()
    assert (output[rows] != 0).any(-1).all()
    (at_query, at_value), at_weights = layer_gradients(
        layer, loss, QUERY, VALUE
    )
    assert (at_query[~rows] == 0).all()
    for array in (output, at_query, at_value, *at_weights.values()):
        assert np.isfinite(array).all()
    if not rows.any():
        for array in (at_value, *at_weights.values()):
            assert (array == 0).all()


@pytest.mark.every_backend
@every_kernel
def test_row_fully_masked_in_one_head(kernel):
    mask = EXPLICIT.copy()
    mask[0, 1, 2] = False
    mask[0, 0, 2, 0] = True
    layer = make(flash_attention=FLASH[kernel])
    output = values(layer(QUERY, VALUE, KEY, attention_mask=mask))
    arrays = layer.get_weights()
    first = [array.take([0], axis=-2) for array in arrays[:6]]
    expected, _ = reference.multi_head_attention(
        QUERY,
        VALUE,
        [*first, arrays[6][:1], arrays[7]],
        key=KEY,
        mask=mask[:, :1],
    )
    assert_close(output[0, 2], expected[0, 2])


@every_kernel
@every_padding
@pytest.mark.parametrize("causal", [False, True])
def test_padding_does_not_change_outputs(padding, causal, kernel):
    """A sequence with NaN padding gives the same output as alone."""
    mask = PADDINGS[padding]
    layer = self_attention(causal=causal, flash_attention=FLASH[kernel])
    x = normal(B, S, D, seed=3)
    poisoned = np.where(mask[..., None], x, np.nan).astype("float32")
    tensor = masked(poisoned, mask)
    output = values(layer(tensor, tensor))
    for row in range(B):
        sequence = x[row : row + 1, mask[row]]
        count = sequence.shape[1]
        alone, _ = reference.multi_head_attention(
            sequence,
            sequence,
            layer.get_weights(),
            mask=reference.visible(1, count, count, causal=causal),
        )
        assert_close(output[row : row + 1, mask[row]], alone)
    assert (output[~mask] == 0).all()
    if not (causal and padding == "right"):
        # Right padding is after all tokens: causal attention masks it anyway.
        assert_differs(output[mask], values(layer(x, x))[mask])


@every_kernel
@every_padding
def test_padding_does_not_change_gradients(padding, kernel):
    mask = PADDINGS[padding]
    layer = self_attention(flash_attention=FLASH[kernel])
    x = normal(B, S, D, seed=3)

    def gradients(filler):
        filled = np.where(mask[..., None], x, filler).astype("float32")

        def loss(x):
            return ops.sum(
                ops.square(layer(x, x, query_mask=mask, value_mask=mask))
            )

        (at_input,), at_weights = layer_gradients(layer, loss, filled)
        return [at_input, *at_weights.values()]

    zero = gradients(0.0)
    assert (zero[0][~mask] == 0).all()
    for poison in (np.nan, np.inf):
        for one, other in zip(gradients(poison), zero, strict=True):
            np.testing.assert_array_equal(one, other)


def test_nan_padding_of_the_memory_is_ignored():
    layer = make()
    value, key = (
        np.where(HOLES[..., None], x, np.nan).astype("float32")
        for x in (VALUE, KEY)
    )
    output = values(layer(QUERY, value, key, value_mask=HOLES))
    expected = layer(QUERY, VALUE, KEY, value_mask=HOLES)
    assert_close(output, values(expected))


@pytest.mark.every_backend
def test_mask_survives_autocast():
    layer = self_attention(dtype="mixed_bfloat16")
    x = normal(B, S, D)
    output = layer(masked(x, RIGHT), masked(x, RIGHT))
    np.testing.assert_array_equal(values(mask_of(output)), RIGHT)
    assert (values(output)[~RIGHT] == 0).all()


def test_masked_inputs_of_an_unbuilt_layer():
    x = masked(normal(B, S, D), RIGHT)
    output = MultiHeadAttention(N, 3)(x, x)
    assert (values(output)[~RIGHT] == 0).all()


def test_window_counts_tokens():
    """Distances count tokens, not padding."""
    layer = self_attention(sliding_window=2)
    x = normal(B, S, D, seed=3)
    output = values(layer(x, x, query_mask=HOLES, value_mask=HOLES))
    tensor = masked(x, HOLES)
    counted = values(layer(tensor, tensor))
    sequence = x[:1, HOLES[0]]
    assert_close(counted[:1, HOLES[0]], values(layer(sequence, sequence)))
    # Two distinct mask objects mean two sequences, with positions by index.
    assert_differs(output, counted)
