"""ScoredAttention compared with float64 loops and Keras; argument checks."""

import functools

import keras
import numpy as np
import pytest
from keras import ops

from keras_attn.layers import ScoredAttention
from keras_attn.ops import capture_weights
from tests.helpers import reference
from tests.helpers.contract import attach_mask, check_layer, randomize
from tests.helpers.gradients import gradient
from tests.helpers.ops_cases import assert_close, assert_differs, normal, values
from tests.helpers.weight_gradients import layer_gradients, weighted_sum
from tests.layers.attention_cases import (
    HOLES,
    KEY,
    QUERY,
    QUERY_MASK,
    RIGHT,
    VALUE,
    B,
    D,
    S,
    T,
    mutants,
)
from tests.layers.scored_cases import KEYS, MASKS, WIDE, expected_of, make

W = VALUE.shape[-1]
every_score = pytest.mark.parametrize("score", reference.SCORES)


@pytest.mark.every_backend
@every_score
def test_equals_its_equation(score):
    layer = make(score)
    output, weights = layer(
        QUERY, VALUE, KEYS[score], return_attention_scores=True
    )
    expected, expected_weights = expected_of(layer)
    assert_close(values(output), expected)
    assert_close(values(weights), expected_weights)
    again = layer(QUERY, VALUE, KEYS[score])
    assert_close(values(again), expected)
    uniform = np.broadcast_to(VALUE.mean(1, keepdims=True), expected.shape)
    assert_differs(expected, uniform)


@pytest.mark.parametrize("name", MASKS)
def test_masks(name):
    call_kwargs, mask = MASKS[name]
    layer = make("additive")
    output, weights = layer(
        QUERY, VALUE, KEY, return_attention_scores=True, **call_kwargs
    )
    expected, expected_weights = expected_of(layer, mask)
    assert_close(values(output), expected)
    assert_close(values(weights), expected_weights)
    for wrong in mutants(mask[:, None]):
        assert_differs(values(output), expected_of(layer, wrong[:, 0])[0])


@pytest.mark.every_backend
@every_score
def test_gradients(score):
    """Compared with central differences of the loops."""
    layer = make(score)
    call_kwargs, mask = MASKS["all masks"]
    # With left padding, the loops need the key positions.
    positions = reference.positions_from_mask(call_kwargs["value_mask"])
    upstream = normal(B, T, W, seed=5)

    def loss(query, value, key):
        return weighted_sum(layer(query, value, key, **call_kwargs), upstream)

    start = [QUERY, VALUE, KEYS[score]]
    at_inputs, at_weights = layer_gradients(layer, loss, *start)
    gradients = [*at_inputs, *at_weights.values()]
    arrays = [*start, *layer.get_weights()]

    def moved(step, chosen, direction):
        query, value, key, *weights = (
            array + step * direction if n == chosen else array
            for n, array in enumerate(arrays)
        )
        output, _ = reference.scored_attention(
            score, query, key, value, weights, mask, positions
        )
        return np.sum(output * upstream)

    for chosen, array in enumerate(arrays):
        direction = normal(*array.shape, dtype="float64")
        ends = (moved(step, chosen, direction) for step in (1e-4, -1e-4))
        slope = np.subtract(*ends) / 2e-4
        actual = np.sum(gradients[chosen] * direction)
        np.testing.assert_allclose(actual, slope, rtol=1e-3, atol=1e-4)


def keras_gradients(attention):
    """Returns the output and the gradients of query, value and key."""
    arrays = QUERY, VALUE, WIDE
    upstream = normal(B, T, W, seed=5)
    gradients = gradient(
        lambda *x: weighted_sum(attention(*x), upstream), *arrays
    )
    return values(attention(*map(ops.convert_to_tensor, arrays))), gradients


@pytest.mark.every_backend
@pytest.mark.parametrize("causal", [False, True])
def test_dot_equals_keras(causal):
    ours = ScoredAttention("dot")
    theirs = keras.layers.Attention()
    masks = map(ops.convert_to_tensor, (QUERY_MASK, RIGHT))
    query_mask, value_mask = masks
    output, gradients = keras_gradients(
        lambda query, value, key: ours(
            query,
            value,
            key,
            query_mask=query_mask,
            value_mask=value_mask,
            use_causal_mask=causal,
        )
    )
    expected, expected_gradients = keras_gradients(
        lambda query, value, key: theirs(
            [query, value, key],
            mask=[query_mask, value_mask],
            use_causal_mask=causal,
        )
    )
    assert_close(output, expected)
    for one, other in zip(gradients, expected_gradients, strict=True):
        assert_close(one, other)


@pytest.mark.every_backend
def test_additive_equals_keras():
    """Keras's layer does not project query and key."""
    ours = ScoredAttention("additive")
    theirs = keras.layers.AdditiveAttention()
    ours.build(QUERY.shape, VALUE.shape, WIDE.shape)
    theirs.build([QUERY.shape, VALUE.shape, WIDE.shape])
    scale = normal(D, seed=9)
    ours.set_weights([scale, np.eye(D), np.eye(D)])
    theirs.set_weights([scale])
    output, gradients = keras_gradients(ours)
    expected, expected_gradients = keras_gradients(
        lambda query, value, key: theirs([query, value, key])
    )
    assert_close(output, expected)
    for one, other in zip(gradients, expected_gradients, strict=True):
        assert_close(one, other)


def test_additive_equals_concat():
    """v . tanh([q; k] [W; U]), as in Luong et al."""
    layer = make("additive", units=4)
    vector, *matrices = layer.get_weights()
    assert vector.shape == (4,)
    matrix = np.concatenate(matrices)
    _, weights = layer(QUERY, VALUE, KEY, return_attention_scores=True)
    for t, s in np.ndindex(T, S):
        pair = np.concatenate([QUERY[0, t], KEY[0, s]])
        other = np.concatenate([QUERY[0, t], KEY[0, 0]])
        score = vector @ (np.tanh(pair @ matrix) - np.tanh(other @ matrix))
        ratio = values(weights)[0, t, s] / values(weights)[0, t, 0]
        np.testing.assert_allclose(ratio, np.exp(score), rtol=1e-4)


def test_location_depends_on_the_query_only():
    layer = make("location", max_sequence_length=S + 3)
    _, weights = layer(QUERY, VALUE, KEY, return_attention_scores=True)
    _, others = layer(QUERY, VALUE, 3 * KEY, return_attention_scores=True)
    assert_close(values(weights), values(others), 0)
    short = values(layer(QUERY, VALUE[:, :2], KEY[:, :2]))
    expected, _ = expected_of(layer, value=VALUE[:, :2], key=KEY[:, :2])
    assert_close(short, expected)
    # Positions count tokens: padding does not shift them.
    output = values(layer(QUERY, VALUE, KEY, value_mask=HOLES))
    token_mask = HOLES[0]
    alone, _ = expected_of(
        layer,
        query=QUERY[:1],
        value=VALUE[:1, token_mask],
        key=KEY[:1, token_mask],
    )
    assert_close(output[:1], alone)


def test_cosine_of_zero_vectors_is_zero():
    layer = make("cosine")
    key = WIDE.copy()
    key[:, 1] = 0

    def loss(query, key):
        output = layer(query, VALUE, key)
        return weighted_sum(output, normal(B, T, W, seed=5))

    query = QUERY.copy()
    query[0, 0] = 0
    output = values(layer(query, VALUE, key))
    assert_close(output[0, 0], VALUE[0].mean(0))
    gradients, at_weights = layer_gradients(layer, loss, query, key)
    for array in (*gradients, *at_weights.values()):
        assert np.isfinite(array).all() and np.abs(array).max() < 100


@keras.saving.register_keras_serializable(package="tests")
class Distance(keras.layers.Layer):
    """score = -f |q - k|^2, with a learned f."""

    def build(self, query_shape):
        self.factor = self.add_weight((), initializer="ones", name="factor")

    def call(self, query, key):
        gap = query[:, :, None] - key[:, None]
        return -self.factor * ops.sum(ops.square(gap), axis=-1)


@keras.saving.register_keras_serializable(package="tests")
def negative_distance(query, key):
    return -ops.sum(ops.square(query[:, :, None] - key[:, None]), axis=-1)


@pytest.mark.parametrize("score", [Distance, lambda: negative_distance])
def test_custom_score(score):
    layer = ScoredAttention(score())
    output = values(layer(QUERY, VALUE, WIDE, value_mask=HOLES))
    gap = ((QUERY[:, :, None] - WIDE[:, None]) ** 2).sum(-1)
    weights = np.exp(-gap) * HOLES[:, None]
    weights /= weights.sum(-1, keepdims=True)
    assert_close(output, weights @ VALUE)
    copy = ScoredAttention.from_config(layer.get_config())
    again = values(copy(QUERY, VALUE, WIDE, value_mask=HOLES))
    assert_close(again, output, 1e-6)


def test_contract_with_a_score_layer():
    """The weights of a score layer are built, trained and saved."""
    output, _ = check_layer(
        lambda **kwargs: ScoredAttention(Distance(), **kwargs),
        (QUERY, normal(B, S, D)),
        {"return_attention_scores": True},
        masks=False,
    )
    assert output.shape == (B, T, D)


def test_invalid_score_shape_raises():
    with pytest.raises(ValueError, match="`score` must return one score"):
        ScoredAttention(lambda query, key: query)(QUERY, VALUE)


@pytest.mark.parametrize(
    ("score", "local", "dtype"),
    [
        ("additive", "predictive", "float16"),
        ("additive", None, "float32"),
        ("cosine", None, "bfloat16"),
        ("location", None, "float16"),
    ],
)
def test_fully_masked_rows_are_zero(score, local, dtype):
    policy = dtype if dtype == "float32" else f"mixed_{dtype}"
    layer = make(score, local=local, dtype=policy)
    key_mask = np.array([[0, 1, 1, 1, 0], [0, 0, 0, 0, 0]], "bool")
    allowed = np.ones((B, T, S), "bool")
    allowed[0, 1] = False
    rows = QUERY_MASK & key_mask.any(1, keepdims=True) & allowed.any(-1)
    query = np.where(QUERY_MASK[..., None], QUERY, np.nan).astype("float32")
    value, key = (
        np.where(key_mask[..., None], x, np.nan).astype("float32")
        for x in (VALUE, KEYS[score])
    )

    def call(query, value, key):
        return layer(
            query,
            value,
            key,
            query_mask=QUERY_MASK,
            value_mask=key_mask,
            attention_mask=allowed,
            return_attention_scores=True,
        )

    output, weights = call(query, value, key)
    output, weights = values(output), values(weights)
    assert (output[~rows] == 0).all() and (weights[~rows] == 0).all()
    assert (output[rows] != 0).any(-1).all()
    at_inputs, at_weights = layer_gradients(
        layer, lambda *x: weighted_sum(call(*x)[0], 1.0), query, value, key
    )
    for array in (output, *at_inputs, *at_weights.values()):
        assert np.isfinite(array).all()
    at_query, at_value, at_key = at_inputs
    assert (at_query[~rows] == 0).all()
    assert (at_value[~key_mask] == 0).all()
    assert (at_key[~key_mask] == 0).all()


def test_implicit_masks_are_applied_and_propagated():
    layer = make("general")
    query, value, key = (
        attach_mask(ops.convert_to_tensor(array), mask)
        for array, mask in ((QUERY, QUERY_MASK), (VALUE, HOLES), (KEY, RIGHT))
    )
    before = [x._keras_mask for x in (query, value, key)]
    output = layer(query, value, key)
    assert [x._keras_mask for x in (query, value, key)] == before
    np.testing.assert_array_equal(values(output._keras_mask), QUERY_MASK)
    mask = QUERY_MASK[:, :, None] & (HOLES & RIGHT)[:, None]
    assert_close(values(output), expected_of(layer, mask)[0])


def test_packed_sequences_attend_to_themselves_only():
    layer = make("location")
    segments = np.int32([[0, 0, 0, 1, 1], [0, 1, 1, 1, 2]])
    x = normal(B, S, D)
    output = values(
        layer(
            x, VALUE, KEY, query_segment_ids=segments, key_segment_ids=segments
        )
    )
    alone, _ = expected_of(
        layer, query=x[:1, 3:], value=VALUE[:1, 3:], key=KEY[:1, 3:]
    )
    assert_close(output[:1, 3:], alone)


def test_dropout():
    layer = make("general", dropout=0.5, seed=1)
    inference = values(layer(QUERY, VALUE, KEY))
    assert_close(inference, expected_of(layer)[0])
    output, weights = layer(
        QUERY, VALUE, KEY, training=True, return_attention_scores=True
    )
    assert_differs(values(output), inference)
    assert_close(values(weights), expected_of(layer)[1])


def test_weights_are_captured():
    layer = make("general")
    _, weights = layer(QUERY, VALUE, KEY, return_attention_scores=True)
    with capture_weights() as captured:
        layer(QUERY, VALUE, KEY)
    assert list(captured) == [(layer.path, 0)]
    captured = values(captured[layer.path, 0])
    assert_close(captured, values(weights)[:, None], 1e-6)


@pytest.mark.parametrize(
    "arguments",
    [
        {"score": "additive", "units": 4, "local": "predictive", "window": 2},
        {"score": "location", "hard": "gumbel", "seed": 3},
        {"score": "cosine", "dropout": 0.1, "local": "monotonic"},
    ],
)
def test_contract(arguments):
    make_layer = functools.partial(ScoredAttention, **arguments)
    call_kwargs = {
        "return_attention_scores": True,
        "attention_mask": np.ones((B, T, S), "bool"),
    }
    key = (KEYS["cosine"],) if arguments["score"] == "cosine" else ()
    output, weights = check_layer(make_layer, (QUERY, VALUE, *key), call_kwargs)
    assert output.shape == (B, T, W)
    assert weights.shape == (B, T, S)


@pytest.mark.filterwarnings("ignore:.*does not have a `quantize` method")
def test_quantized_score_is_saved_and_loaded(tmp_path):
    query, value = keras.Input((T, D)), keras.Input((S, D))
    layer = ScoredAttention("general")
    model = randomize(keras.Model([query, value], layer(query, value)))
    inputs = [QUERY, normal(B, S, D)]
    exact = values(model(inputs))
    model.quantize("int8")
    output = values(model(inputs))
    assert (output != exact).any()
    assert_close(output, exact, 0.1)
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    assert_close(values(loaded(inputs)), output, 1e-6)


@pytest.mark.every_backend
def test_unknown_lengths():
    """Compiled by `fit`, with unknown lengths."""
    ids = keras.Input((None,), dtype="int32")
    x = keras.layers.Embedding(9, 4, mask_zero=True)(ids)
    for arguments in (
        {"score": "additive", "units": 3},
        {"score": "location", "max_sequence_length": 7},
        {"score": "cosine", "local": "predictive", "window": 3},
        {"score": "general", "local": "monotonic", "window": 2},
        {"score": "scaled_dot", "hard": "gumbel"},
    ):
        y = ScoredAttention(**arguments)(x, x)
        x = keras.layers.Dense(4)(keras.layers.Add()([x, y]))
    pooled = keras.layers.GlobalAveragePooling1D()(x)
    model = randomize(keras.Model(ids, [x, pooled]))
    # The same sequence twice, with different padding.
    padded = np.int32(
        [[3, 1, 2, 0, 0, 0], [0, 3, 1, 0, 2, 0], [4, 5, 6, 7, 1, 8]]
    )
    trained = keras.Model(ids, pooled)
    trained.compile(keras.optimizers.SGD(0.1), "mse")
    before = trained.get_weights()
    trained.fit(padded, normal(3, 4), verbose=0)
    for old, new in zip(before, trained.get_weights(), strict=True):
        assert np.isfinite(new).all() and (old != new).any()
    output, pooled = model.predict(padded, verbose=0)
    assert_close(output[0, :3], output[1, [1, 2, 4]])
    assert_close(pooled[0], pooled[1])
    assert_differs(pooled[0], pooled[2])


def test_config_contains_every_argument():
    arguments = {
        "score": "additive",
        "units": 4,
        "local": "monotonic",
        "window": 3,
        "hard": "gumbel",
        "temperature": 0.5,
        "seed": 7,
    }
    layer = ScoredAttention(**arguments, kernel_initializer="ones")
    config = ScoredAttention.from_config(layer.get_config()).get_config()
    for name, value in arguments.items():
        assert config[name] == value
    assert config["kernel_initializer"]["class_name"] == "Ones"
    others = {"score": "location", "max_sequence_length": 9, "dropout": 0.2}
    config = ScoredAttention(**others).get_config()
    assert {name: config[name] for name in others} == others


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"score": "euclid"}, "`score` must be one of 'dot', 'scaled_dot'"),
        ({"score": None}, "`score` must be one of"),
        ({"units": 0}, "`units` must be a positive"),
        ({"score": "dot", "units": 3}, "`units` is an argument of the score"),
        (
            {"max_sequence_length": 3},
            "`max_sequence_length` is an argument of the score",
        ),
        ({"local": "wide"}, "`local` must be one of None, 'monotonic'"),
        ({"local": "monotonic", "window": 0}, "`window` must be a positive"),
        ({"hard": True}, "`hard` must be one of None, 'reinforce', 'gumbel'"),
        ({"hard": "gumbel", "temperature": 0}, "`temperature` must be a num"),
        ({"dropout": 1}, "`dropout` must lie in"),
        ({"hard": "gumbel", "dropout": 0.1}, "`dropout` must be 0 for hard"),
        (
            {"hard": "gumbel", "local": "predictive"},
            "`hard` attention needs weights",
        ),
    ],
)
def test_invalid_arguments_raise(arguments, message):
    with pytest.raises(ValueError, match=message):
        ScoredAttention(**arguments)


@pytest.mark.parametrize(
    ("arguments", "shapes", "message"),
    [
        ({}, [(4, 6), (5, 7)], "must have rank 3"),
        ({}, [(2, 4, 6), (2, 5, 7), (2, 4, 7)], "the same batch and length"),
        ({}, [(2, 4, 6), (3, 5, 7)], "`query` and `value` must have the same"),
        ({"score": "dot"}, [(2, 4, 6), (2, 5, 7)], "the score 'dot'"),
        ({"score": "cosine"}, [(2, 4, 6), (2, 5, 7)], "the score 'cosine'"),
        (
            {"score": "location", "max_sequence_length": 4},
            [(2, 4, 6), (2, 5, 7)],
            "max_sequence_length=4 positions",
        ),
    ],
)
def test_invalid_shapes_raise(arguments, shapes, message):
    with pytest.raises(ValueError, match=message):
        ScoredAttention(**arguments)(*(ops.ones(shape) for shape in shapes))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda layer: layer(QUERY[..., 1:], VALUE, KEY), "`query` must have"),
        (lambda layer: layer(QUERY, VALUE), "`key` must have 5 features"),
        (
            lambda layer: layer(
                QUERY, VALUE, KEY, attention_mask=np.ones((B, 2, T, S))
            ),
            "`attention_mask` must have one head",
        ),
        (
            lambda layer: layer(QUERY, VALUE, KEY, query_mask=RIGHT),
            "`query_mask` must have the shape of its tensor",
        ),
        (
            lambda layer: layer(
                QUERY, VALUE, KEY, key_positions=np.ones((B, S), "float32")
            ),
            "`key_positions` must hold integers",
        ),
        (
            lambda layer: layer(QUERY, VALUE, KEY, return_log_probability=True),
            "`return_log_probability` needs hard='reinforce'",
        ),
    ],
)
def test_invalid_calls_raise(call, message):
    with pytest.raises(ValueError, match=message):
        call(make("additive"))


@pytest.mark.every_backend
def test_location_past_the_columns_raises():
    with pytest.raises(
        ValueError, match="`max_sequence_length` must be given for"
    ):
        ScoredAttention("location")(
            keras.Input((None, 4)), keras.Input((None, 4))
        )
    layer = make("location")
    far = np.int32([[0, 1, 2, 3, S], [0, 1, 2, 3, 4]])
    with pytest.raises(
        ValueError, match=r"`key_positions` must have .*=5 positions.* 6"
    ):
        layer(QUERY, VALUE, KEY, key_positions=far)
