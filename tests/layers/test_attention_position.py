"""Properties of all positions of an attention layer."""

import hypothesis
import keras
import numpy as np
import pytest
from hypothesis import strategies as st
from keras import ops

from keras_attn import cache as kv
from keras_attn.backend import compiled
from keras_attn.blocks import EncoderBlock
from keras_attn.layers import (
    ALiBiPosition,
    AttentionPosition,
    MultiHeadAttention,
    PositionalEmbedding,
    RotaryPosition,
    T5Position,
)
from keras_attn.ops import capture_weights
from tests.helpers.contract import attach_mask, check_layer, randomize
from tests.helpers.ops_cases import assert_close, assert_differs, normal, values
from tests.helpers.weight_gradients import layer_gradients, weighted_sum
from tests.layers.position_cases import POSITIONS, B, D, H, N, T, X, make

every_position = pytest.mark.parametrize("name", POSITIONS)
LEFT = np.array([[0, 0, 1, 1, 1, 1], [1, 1, 1, 1, 1, 1]], "bool")
HOLES = np.array([[1, 0, 1, 1, 0, 1], [0, 1, 1, 0, 1, 0]], "bool")


def masked(x, mask):
    return attach_mask(ops.convert_to_tensor(x), mask)


@every_position
def test_contract(name):
    check_layer(
        lambda **kwargs: MultiHeadAttention(
            N, H, attention_position=POSITIONS[name](), **kwargs
        ),
        (X, X),
        {"use_causal_mask": True},
    )


@every_position
def test_position_changes_the_output(name):
    layer, plain = make(name), make(None)
    plain.set_weights(layer.get_weights()[-8:])
    assert_differs(values(layer(X, X)), values(plain(X, X)))


@every_position
@pytest.mark.parametrize("causal", [False, True])
def test_output_depends_on_distances_only(name, causal):
    layer = make(name, causal=causal)
    position_ids = np.tile(np.arange(T, dtype="int32"), (B, 1))
    expected = values(layer(X, X))
    for offset in (1, 8_000):
        moved = position_ids + np.int32([[offset], [2 * offset]])
        output = layer(X, X, query_positions=moved, key_positions=moved)
        assert_close(values(output), expected)
    if not causal:
        # Shifting one side only changes the distances.
        output = layer(
            X, X, query_positions=position_ids + 3, key_positions=position_ids
        )
        assert_differs(values(output), expected)
    doubled = 2 * position_ids
    output = layer(X, X, query_positions=doubled, key_positions=doubled)
    assert_differs(values(output), expected)


@every_position
@pytest.mark.parametrize(
    ("causal", "mask"), [(True, LEFT), (False, HOLES)], ids=["left", "holes"]
)
def test_padding_does_not_change_outputs(name, causal, mask):
    layer = make(name, causal=causal)
    poisoned = np.where(mask[..., None], X, np.nan).astype("float32")
    tensor = masked(poisoned, mask)
    output = values(layer(tensor, tensor))
    for row in range(B):
        sequence = X[row : row + 1, mask[row]]
        alone = values(layer(sequence, sequence))
        assert_close(output[row : row + 1, mask[row]], alone)
    assert (output[~mask] == 0).all()
    # Wrong result: positions that count padding too.
    slots = np.where(mask, np.arange(T), -1).astype("int32")
    wrong = layer(X, X, query_positions=slots, key_positions=slots)
    if mask is HOLES:
        assert_differs(values(wrong)[mask], output[mask])


@every_position
def test_a_key_mask_does_not_shift_positions(name):
    """Masked keys keep their positions if the queries are not masked."""
    layer = make(name)
    output = values(layer(X, X, value_mask=LEFT))
    position_ids = np.tile(np.arange(T, dtype="int32"), (B, 1))
    expected = layer(
        X,
        X,
        query_positions=position_ids,
        key_positions=np.where(LEFT, position_ids, -1).astype("int32"),
    )
    assert_close(output, values(expected))


@pytest.mark.every_backend
@every_position
def test_offset_and_padding_do_not_change_gradients(name):
    layer = make(name, causal=True)
    upstream = normal(B, T, D, seed=5)
    upstream[~LEFT] = 0

    def gradients(x, **kwargs):
        def loss(x):
            return weighted_sum(layer(x, x, **kwargs), upstream)

        (at_x,), at_weights = layer_gradients(layer, loss, x)
        return [at_x, *at_weights.values()]

    counted = np.where(LEFT, LEFT.cumsum(1) - 1, -1).astype("int32")
    expected = gradients(X, query_positions=counted, key_positions=counted)
    moved = np.where(LEFT, counted + 4_000, -1).astype("int32")
    poisoned = np.where(LEFT[..., None], X, np.nan).astype("float32")
    found = gradients(poisoned, query_positions=moved, key_positions=moved)
    for one, other in zip(found, expected, strict=True):
        assert_close(one, other, 2e-5)
        assert np.abs(other).max() > 0


@every_position
@pytest.mark.parametrize(
    ("window", "counts"), [(None, [1] * T), (3, [3, 2, 1])]
)
def test_cached_decoding_equals_the_full_pass(name, window, counts):
    layer = make(name, sliding_window=window)
    expected = values(layer(X, X, use_causal_mask=True))
    output = decoded(layer, counts)
    assert_close(output, expected)
    assert_differs(output, values(layer(X, X)))


def decoded(layer, counts, wrap=lambda step, layer: step):
    def step(new, cache):
        count = new.shape[1]
        position_ids, cache = kv.open_slots(cache, count)
        output, cache = layer.decode_step(
            new, cache, 0, kv.DecodingStep(position_ids)
        )
        return output, kv.close_slots(cache, count)

    step = wrap(step, layer)
    heads = layer.num_key_value_heads
    cache = kv.empty(B, T + 2, 1, heads, H, H, "float32")
    outputs, start = [], 0
    for count in counts:
        new = ops.convert_to_tensor(X[:, start : start + count])
        output, cache = step(new, cache)
        outputs.append(values(output))
        start += count
    return np.concatenate(outputs, axis=1)


@pytest.mark.every_backend
@every_position
def test_compiled_step(name):
    layer = make(name, num_key_value_heads=1)
    output = decoded(
        layer, [1] * T, lambda step, layer: compiled(step, layer.variables)
    )
    assert_close(output, values(layer(X, X, use_causal_mask=True)))


@every_position
def test_attend_memory_equals_the_full_pass(name):
    layer, beams = make(name, D + 1), 3
    memory = normal(B, 5, D + 1, seed=2)
    memory_positions = np.int32([[0, 1, 2, 3, 4], [0, 1, 2, -1, -1]])
    new = normal(B * beams, 2, D, seed=3)
    position_ids = np.arange(B * beams, dtype="int32")[:, None] + np.int32(
        [[4, 5]]
    )
    keys, projected = layer.project_memory(
        ops.convert_to_tensor(memory), ops.convert_to_tensor(memory_positions)
    )
    cache = kv.from_projections(
        [keys], [projected], ops.convert_to_tensor(memory_positions)
    )
    output = layer.attend_memory(
        ops.convert_to_tensor(new),
        cache,
        0,
        ops.convert_to_tensor(position_ids),
    )
    expected = layer(
        new,
        np.repeat(memory, beams, axis=0),
        query_positions=position_ids,
        key_positions=np.repeat(memory_positions, beams, axis=0),
    )
    assert_close(values(output), values(expected))
    with pytest.raises(ValueError, match="`positions` must be given"):
        layer.attend_memory(ops.convert_to_tensor(new), cache, 0)


@every_position
def test_returned_and_captured_weights(name):
    layer = make(name)
    output, weights = layer(X, X, return_attention_scores=True)
    assert_close(values(output), values(layer(X, X)))
    with capture_weights() as captured:
        layer(X, X)
    (recorded,) = captured.values()
    assert_close(values(recorded), values(weights))


LAYERS = {}


@hypothesis.settings(max_examples=8)
@hypothesis.given(
    st.sampled_from(list(POSITIONS)),
    st.integers(1, 2),
    st.integers(1, 3),
    st.integers(2, 4),
    st.integers(0, 9_000),
    st.booleans(),
)
def test_single_query_equals_full_batch(
    name, batch, queries, keys, offset, causal
):
    """A single query gives the same output as among other queries."""
    if name not in LAYERS:
        LAYERS[name] = make(name)
    layer = LAYERS[name]
    x, memory = normal(batch, queries, D, seed=6), normal(batch, keys, D)
    position_ids = offset + np.arange(max(queries, keys), dtype="int32")[None]
    position_ids = np.repeat(position_ids, batch, axis=0)
    output = values(
        layer(
            x,
            memory,
            use_causal_mask=causal,
            query_positions=position_ids[:, :queries],
            key_positions=position_ids[:, :keys],
        )
    )
    assert output.shape == (batch, queries, D)
    row = queries - 1
    position_ids = position_ids - np.int32(offset)
    alone = layer(
        x[:, row:],
        memory,
        use_causal_mask=causal,
        query_positions=position_ids[:, row : row + 1],
        key_positions=position_ids[:, :keys],
    )
    assert_close(output[:, row:], values(alone))


@pytest.mark.every_backend
@pytest.mark.parametrize("blocks", [False, True])
def test_shared_position_is_trained_and_saved_once(tmp_path, blocks):
    """Both layers train one table, which is saved once."""
    position = T5Position(N, 8, 6)
    inputs = keras.Input((None, D))
    if blocks:
        layers = [
            EncoderBlock(
                num_heads=N, intermediate_dim=8, attention_position=position
            )
            for _ in range(2)
        ]
        output = layers[1](layers[0](inputs))
    else:
        layers = [
            MultiHeadAttention(N, H, attention_position=position) for _ in "ab"
        ]
        output = layers[0](inputs, inputs)
        output = layers[1](output, output)
    model = randomize(keras.Model(inputs, output))
    tables = [w for w in model.weights if w.path.endswith("table")]
    assert len(tables) == 1
    before = values(tables[0])
    model.compile(keras.optimizers.SGD(0.5), "mse")
    model.fit(X, normal(B, T, D, seed=2), epochs=2, verbose=0)
    assert_differs(values(tables[0]), before, 1e-5)
    expected = values(model(X))

    path = str(tmp_path / "model.keras")
    model.save(path)
    loaded = keras.saving.load_model(path)
    assert len(loaded.weights) == len(model.weights)
    assert_close(values(loaded(X)), expected)
    model.save_weights(str(tmp_path / "model.weights.h5"))
    randomize(loaded, seed=1)
    assert_differs(values(loaded(X)), expected)
    loaded.load_weights(str(tmp_path / "model.weights.h5"))
    assert_close(values(loaded(X)), expected)


@pytest.mark.parametrize(
    "position",
    [PositionalEmbedding(), "rotary", RotaryPosition],
    ids=["embedding", "name", "class"],
)
def test_invalid_position_raises(position):
    with pytest.raises(ValueError, match="`attention_position` must be an Att"):
        MultiHeadAttention(N, H, attention_position=position)
    with pytest.raises(ValueError, match="`attention_position` must be an Att"):
        EncoderBlock(
            num_heads=N, intermediate_dim=8, attention_position=position
        )


@pytest.mark.parametrize("position", [ALiBiPosition(3), T5Position(3)])
def test_mismatched_heads_raise(position):
    message = rf"2 heads of the attention.*{type(position).__name__}.*=3"
    with pytest.raises(ValueError, match=message):
        MultiHeadAttention(N, H, attention_position=position)
    with pytest.raises(ValueError, match=message):
        EncoderBlock(
            num_heads=N, intermediate_dim=8, attention_position=position
        ).build((None, None, D))


def test_several_attention_axes_raise():
    layer = MultiHeadAttention(N, H, attention_position=RotaryPosition())
    with pytest.raises(ValueError, match=r"exactly one attention axis.*1, 2"):
        layer.build((None, 3, 4, D), (None, 3, 4, D))


@every_position
def test_one_attention_axis_of_several(name):
    layer = MultiHeadAttention(
        N, H, attention_axes=(1,), attention_position=POSITIONS[name]()
    )
    x = normal(1, T, B, D, seed=4)
    layer.build(x.shape, x.shape)
    randomize(layer)
    output = values(layer(x, x))
    flat = MultiHeadAttention(N, H, attention_position=layer.attention_position)
    flat.build((None, None, D), (None, None, D))
    flat.set_weights(layer.get_weights())
    rows = x[0].swapaxes(0, 1)
    assert_close(output[0].swapaxes(0, 1), values(flat(rows, rows)))


def test_base_class_does_not_change_the_output():
    layer, plain = (
        MultiHeadAttention(N, H, attention_position=AttentionPosition()),
        None,
    )
    layer.build((None, None, D), (None, None, D))
    randomize(layer)
    plain = make(None)
    plain.set_weights(layer.get_weights())
    assert_close(values(layer(X, X)), values(plain(X, X)), 1e-6)
