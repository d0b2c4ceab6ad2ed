"""What holds for every position that an attention layer can be given."""

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
from tests.blocks.weight_gradients import layer_gradients, weighted_sum
from tests.contract import attach_mask, check_layer, randomize
from tests.layers.position_cases import POSITIONS, B, D, H, N, T, X, make
from tests.ops.cases import assert_close, assert_differs, normal, values

every_position = pytest.mark.parametrize("name", POSITIONS)
LEFT = np.array([[0, 0, 1, 1, 1, 1], [1, 1, 1, 1, 1, 1]], "bool")
HOLES = np.array([[1, 0, 1, 1, 0, 1], [0, 1, 1, 0, 1, 0]], "bool")


def masked(x, mask):
    return attach_mask(ops.convert_to_tensor(x), mask)


@every_position
def test_the_contract(name):
    check_layer(
        lambda **kwargs: MultiHeadAttention(
            N, H, attention_position=POSITIONS[name](), **kwargs
        ),
        (X, X),
        {"use_causal_mask": True},
    )


@every_position
def test_a_position_changes_something(name):
    layer, bare = make(name), make(None)
    bare.set_weights(layer.get_weights()[-8:])
    assert_differs(values(layer(X, X)), values(bare(X, X)))


@every_position
@pytest.mark.parametrize("causal", [False, True])
def test_only_distance_counts(name, causal):
    layer = make(name, causal=causal)
    places = np.tile(np.arange(T, dtype="int32"), (B, 1))
    expected = values(layer(X, X))
    for offset in (1, 8_000):
        moved = places + np.int32([[offset], [2 * offset]])
        output = layer(X, X, query_positions=moved, key_positions=moved)
        assert_close(values(output), expected)
    if not causal:
        # But one side alone is another distance.
        output = layer(X, X, query_positions=places + 3, key_positions=places)
        assert_differs(values(output), expected)
    wide = 2 * places
    output = layer(X, X, query_positions=wide, key_positions=wide)
    assert_differs(values(output), expected)


@every_position
@pytest.mark.parametrize(
    ("causal", "mask"), [(True, LEFT), (False, HOLES)], ids=["left", "holes"]
)
def test_padding_changes_nothing(name, causal, mask):
    layer = make(name, causal=causal)
    poisoned = np.where(mask[..., None], X, np.nan).astype("float32")
    tensor = masked(poisoned, mask)
    output = values(layer(tensor, tensor))
    for row in range(B):
        sentence = X[row : row + 1, mask[row]]
        alone = values(layer(sentence, sentence))
        assert_close(output[row : row + 1, mask[row]], alone)
    assert (output[~mask] == 0).all()
    # Slots instead of tokens counted is the mutant.
    slots = np.where(mask, np.arange(T), -1).astype("int32")
    careless = layer(X, X, query_positions=slots, key_positions=slots)
    if mask is HOLES:
        assert_differs(values(careless)[mask], output[mask])


@every_position
def test_a_mask_on_one_side_moves_nobody(name):
    """Hidden keys count, where the queries at their slots are not hidden."""
    layer = make(name)
    output = values(layer(X, X, value_mask=LEFT))
    places = np.tile(np.arange(T, dtype="int32"), (B, 1))
    expected = layer(
        X,
        X,
        query_positions=places,
        key_positions=np.where(LEFT, places, -1).astype("int32"),
    )
    assert_close(output, values(expected))


@every_position
def test_gradients_know_no_offset_and_no_padding(name):
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
    spoilt = np.where(LEFT[..., None], X, np.nan).astype("float32")
    found = gradients(spoilt, query_positions=moved, key_positions=moved)
    for one, other in zip(found, expected, strict=True):
        assert_close(one, other, 2e-5)
        assert np.abs(other).max() > 0


@every_position
@pytest.mark.parametrize(
    ("window", "counts"), [(None, [1] * T), (3, [3, 2, 1])]
)
def test_a_cached_decode_is_the_full_pass(name, window, counts):
    layer = make(name, sliding_window=window)
    expected = values(layer(X, X, use_causal_mask=True))
    output = decoded(layer, counts)
    assert_close(output, expected)
    assert_differs(output, values(layer(X, X)))


def decoded(layer, counts, wrap=lambda step, layer: step):
    def step(new, cache):
        count = new.shape[1]
        places, cache = kv.open_slots(cache, count)
        output, cache = layer.decode_step(new, places, cache, 0)
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


@every_position
def test_a_compiled_step(name):
    layer = make(name, num_key_value_heads=1)
    output = decoded(
        layer, [1] * T, lambda step, layer: compiled(step, layer.variables)
    )
    assert_close(output, values(layer(X, X, use_causal_mask=True)))


@every_position
def test_steps_to_a_memory(name):
    layer, beams = make(name, D + 1), 3
    memory = normal(B, 5, D + 1, seed=2)
    there = np.int32([[0, 1, 2, 3, 4], [0, 1, 2, -1, -1]])
    new = normal(B * beams, 2, D, seed=3)
    places = np.arange(B * beams, dtype="int32")[:, None] + np.int32([[4, 5]])
    keys, projected = layer.project_memory(
        ops.convert_to_tensor(memory), ops.convert_to_tensor(there)
    )
    cache = kv.from_projections(
        [keys], [projected], ops.convert_to_tensor(there)
    )
    output = layer.attend_memory(
        ops.convert_to_tensor(new), cache, 0, ops.convert_to_tensor(places)
    )
    expected = layer(
        new,
        np.repeat(memory, beams, axis=0),
        query_positions=places,
        key_positions=np.repeat(there, beams, axis=0),
    )
    assert_close(values(output), values(expected))
    with pytest.raises(ValueError, match="`positions` must be given"):
        layer.attend_memory(ops.convert_to_tensor(new), cache, 0)


@every_position
def test_weights_asked_for_or_captured(name):
    layer = make(name)
    output, weights = layer(X, X, return_attention_scores=True)
    assert_close(values(output), values(layer(X, X)))
    with capture_weights() as captured:
        layer(X, X)
    (recorded,) = captured.values()
    assert_close(values(recorded), values(weights))


ALONE = {}


@hypothesis.settings(max_examples=8)
@hypothesis.given(
    st.sampled_from(list(POSITIONS)),
    st.integers(1, 2),
    st.integers(1, 3),
    st.integers(2, 4),
    st.integers(0, 9_000),
    st.booleans(),
)
def test_any_shape(name, batch, queries, keys, offset, causal):
    """A query by itself gives the row that it gives among the others."""
    if name not in ALONE:
        ALONE[name] = make(name)
    layer = ALONE[name]
    x, memory = normal(batch, queries, D, seed=6), normal(batch, keys, D)
    places = offset + np.arange(max(queries, keys), dtype="int32")[None]
    places = np.repeat(places, batch, axis=0)
    output = values(
        layer(
            x,
            memory,
            use_causal_mask=causal,
            query_positions=places[:, :queries],
            key_positions=places[:, :keys],
        )
    )
    assert output.shape == (batch, queries, D)
    row = queries - 1
    places = places - np.int32(offset)
    alone = layer(
        x[:, row:],
        memory,
        use_causal_mask=causal,
        query_positions=places[:, row : row + 1],
        key_positions=places[:, :keys],
    )
    assert_close(output[:, row:], values(alone))


@pytest.mark.parametrize("blocks", [False, True])
def test_a_shared_position_travels_as_one(tmp_path, blocks):
    """One table, trained by both layers, in the file and out of it."""
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
def test_what_is_no_position(position):
    with pytest.raises(ValueError, match="`attention_position` must be an Att"):
        MultiHeadAttention(N, H, attention_position=position)
    with pytest.raises(ValueError, match="`attention_position` must be an Att"):
        EncoderBlock(
            num_heads=N, intermediate_dim=8, attention_position=position
        )


@pytest.mark.parametrize("position", [ALiBiPosition(3), T5Position(3)])
def test_other_heads_are_refused(position):
    message = rf"2 heads of the attention.*{type(position).__name__}.*=3"
    with pytest.raises(ValueError, match=message):
        MultiHeadAttention(N, H, attention_position=position)
    with pytest.raises(ValueError, match=message):
        EncoderBlock(
            num_heads=N, intermediate_dim=8, attention_position=position
        ).build((None, None, D))


def test_several_axes_are_refused():
    layer = MultiHeadAttention(N, H, attention_position=RotaryPosition())
    with pytest.raises(ValueError, match=r"exactly one attention axis.*1, 2"):
        layer.build((None, 3, 4, D), (None, 3, 4, D))


@every_position
def test_one_axis_of_several(name):
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


def test_a_position_that_does_nothing():
    layer, bare = (
        MultiHeadAttention(N, H, attention_position=AttentionPosition()),
        None,
    )
    layer.build((None, None, D), (None, None, D))
    randomize(layer)
    bare = make(None)
    bare.set_weights(layer.get_weights())
    assert_close(values(layer(X, X)), values(bare(X, X)), 1e-6)
