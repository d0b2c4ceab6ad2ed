"""Layers that are computed twice drop the same both times."""

import keras
import numpy as np
import pytest
from keras import ops

from keras_attn.blocks import DecoderBlock, EncoderBlock
from keras_attn.layers import (
    Dropout,
    FeedForward,
    MultiHeadAttention,
    ScoredAttention,
)
from keras_attn.layers.dropout_seed import (
    DropoutSeeds,
    dropout_depth,
    dropout_seed,
)
from keras_attn.ops.mask_carriers import with_mask
from tests.blocks.weight_gradients import layer_gradients, weighted_sum
from tests.contract import randomize
from tests.helpers.arrays import to_numpy
from tests.helpers.cases import once

RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(2, 5, 8)).astype("float32")
MEMORY = RANDOM.normal(size=(2, 4, 8)).astype("float32")
UPSTREAM = RANDOM.normal(size=X.shape).astype("float32")
MASK = np.array([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0]], "bool")
MEMORY_MASK = np.array([[1, 1, 1, 0], [1, 1, 1, 1]], "bool")
SEED = np.array([7, 11], "uint32")

EVERYWHERE = {
    # Smooth, so that differences say what the slope is.
    "activation": "gelu",
    "dropout": 0.3,
    "attention_dropout": 0.3,
    "activation_dropout": 0.3,
}
LAYERS = {
    "encoder block": lambda: EncoderBlock(
        num_heads=2, intermediate_dim=12, **EVERYWHERE
    ),
    "pre-norm": lambda: EncoderBlock(
        num_heads=2, intermediate_dim=12, normalize_first=True, **EVERYWHERE
    ),
    "decoder block": lambda: DecoderBlock(
        num_heads=2, intermediate_dim=12, **EVERYWHERE
    ),
    "attention": lambda: MultiHeadAttention(2, 4, dropout=0.3, seed=1),
    "scored attention": lambda: ScoredAttention("general", dropout=0.3, seed=1),
    "hard attention": lambda: ScoredAttention("general", hard="gumbel", seed=1),
    "feed-forward": lambda: FeedForward(12, activation="gelu", dropout=0.3),
}

every_layer = pytest.mark.parametrize(
    "name", [*sorted(LAYERS.keys() - {"pre-norm"}), *once(["pre-norm"])]
)


def inputs_of(name):
    """What a layer is called with, and the masks of it by name."""
    if name == "decoder block":
        return (X, MEMORY), {"mask": MASK, "memory_mask": MEMORY_MASK}
    if name.endswith("attention"):
        return (X, X), {"query_mask": MASK, "value_mask": MASK}
    if name == "feed-forward":
        return (X,), {}
    return (X,), {"mask": MASK}


def built(name):
    inputs, _ = inputs_of(name)
    keras.utils.set_random_seed(0)
    layer = LAYERS[name]()
    layer.build(*(x.shape for x in inputs))
    return randomize(layer)


def gradients_of(layer, call, inputs):
    """Gradients at the inputs and at the weights."""

    def loss(*tensors):
        return weighted_sum(call(*tensors), UPSTREAM)

    if keras.backend.backend() != "tensorflow":
        return layer_gradients(layer, loss, *inputs)
    # What is computed twice there gives gradients to variables and arguments
    # only, and `layer_gradients` puts other tensors in the variables' place.
    import tensorflow as tf

    tensors = [ops.convert_to_tensor(x) for x in inputs]
    weights = [w.value for w in layer.trainable_weights]
    with tf.GradientTape() as tape:
        tape.watch(tensors)
        value = loss(*tensors)
    gradients = tape.gradient(
        value,
        tensors + weights,
        unconnected_gradients=tf.UnconnectedGradients.ZERO,
    )
    names = [w.path.split("/", 1)[1] for w in layer.trainable_weights]
    gradients = [to_numpy(x) for x in gradients]
    at_weights = dict(zip(names, gradients[len(tensors) :], strict=True))
    return gradients[: len(tensors)], at_weights


def assert_same(some, others):
    (some_inputs, some_weights), (other_inputs, other_weights) = some, others
    for one, other in zip(some_inputs, other_inputs, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-5, rtol=1e-5)
    assert some_weights.keys() == other_weights.keys()
    for path, one in some_weights.items():
        np.testing.assert_allclose(
            one, other_weights[path], atol=1e-5, rtol=1e-5, err_msg=path
        )


@every_layer
def test_keras_remat(name):
    inputs, masks = inputs_of(name)
    layer = built(name)

    def run(seed, *tensors):
        with dropout_seed(seed):
            return layer(*tensors, training=True, **masks)

    seed = ops.convert_to_tensor(SEED, dtype="int32")
    plain = gradients_of(layer, lambda *x: run(seed, *x), inputs)
    twice = gradients_of(layer, lambda *x: keras.remat(run)(seed, *x), inputs)
    assert_same(plain, twice)
    # The mask that is dropped counts: another one gives other gradients.
    other = gradients_of(layer, lambda *x: run(seed + 1, *x), inputs)
    with pytest.raises(AssertionError):
        assert_same(plain, other)


def masked(inputs, masks):
    return [
        x if mask is None else with_mask(x, mask)
        for x, mask in zip(
            inputs, [*masks.values(), None][: len(inputs)], strict=True
        )
    ]


@every_layer
def test_a_remat_scope(name):
    """Everything is taken care of: seeds, implicit masks, keywords."""
    inputs, masks = inputs_of(name)
    with keras.RematScope("full"):
        twice = built(name)
    plain = built(name)
    plain.set_weights(twice.get_weights())
    seed = ops.convert_to_tensor(SEED, dtype="int32")

    def run(layer, *tensors):
        # The scope around the layer chooses the seed; the layer under remat
        # passes one that follows from it.
        with dropout_seed(seed):
            return layer(*masked(tensors, masks), training=True)

    by_twice = gradients_of(twice, lambda *x: run(twice, *x), inputs)
    # What it drew: the first of the scope's seeds.
    with dropout_seed(seed):
        first = first_seed(plain)

    def same(*tensors):
        with dropout_seed(first):
            return plain(*masked(tensors, masks), training=True)

    if name.endswith("attention"):
        assert_same(gradients_of(plain, same, inputs), by_twice)
    else:
        # A sublayer under remat draws one seed for all of its own, so only
        # the output's own consistency can be asked for: by differences.
        assert_differences(twice, lambda *x: run(twice, *x), inputs, by_twice)


@pytest.mark.parametrize("name", LAYERS)
def test_nothing_is_drawn_where_nothing_is_dropped(name):
    inputs, masks = inputs_of(name)
    with keras.RematScope("full"):
        layer = built(name)
    generators = list(generators_of(layer))
    before = [to_numpy(generator.state.value) for generator in generators]
    tensors = masked([ops.convert_to_tensor(x) for x in inputs], masks)
    layer(*tensors)
    layer(*tensors, training=False)
    for generator, state in zip(generators, before, strict=True):
        np.testing.assert_array_equal(to_numpy(generator.state.value), state)


def generators_of(layer):
    for part in layer._flatten_layers():
        if isinstance(getattr(part, "seed_generator", None), DropoutSeeds):
            yield part.seed_generator


def first_seed(layer):
    return next(generators_of(layer)).next()


def assert_differences(layer, call, inputs, gradients):
    """The gradients are those that differences of the output say."""
    random = np.random.default_rng(1)

    def loss():
        output = ops.stop_gradient(call(*map(ops.convert_to_tensor, inputs)))
        return float((to_numpy(output).astype("float64") * UPSTREAM).sum())

    for path, gradient in gradients[1].items():
        (weight,) = [
            w for w in layer.trainable_weights if w.path.endswith(path)
        ]
        value = to_numpy(weight).copy()
        direction = random.normal(size=value.shape).astype("float32")
        step = 1e-3
        ends = []
        for sign in (1, -1):
            weight.assign(value + sign * step * direction)
            ends.append(loss())
        weight.assign(value)
        slope = (ends[0] - ends[1]) / (2 * step)
        expected = float((gradient * direction).sum())
        assert abs(slope - expected) <= 0.05 * max(1.0, abs(expected)), path


def test_fit_under_a_remat_scope():
    """Compiled, as `fit` does it: JAX would leak tracers, TensorFlow fail."""
    ids = keras.Input((5,), dtype="int32")
    x = keras.layers.Embedding(9, 8, mask_zero=True)(ids)
    # On TensorFlow, Keras's own layers under such a scope fail in `fit`.
    with keras.RematScope("full"):
        x = EncoderBlock(num_heads=2, intermediate_dim=12, **EVERYWHERE)(x)
        x = DecoderBlock(num_heads=2, intermediate_dim=12, **EVERYWHERE)(x, x)
    model = keras.Model(ids, keras.layers.Dense(1)(x))
    model.compile(keras.optimizers.Adam(0.03), "mse")
    data = RANDOM.integers(1, 9, (32, 5)).astype("int32")
    losses = model.fit(
        data, (data > 4)[..., None].astype("float32"), epochs=12, verbose=0
    ).history["loss"]
    assert losses[-1] < 0.7 * losses[0]


def test_a_scope_decides_and_ends():
    layer = Dropout(0.5, seed=3)
    x = np.ones((4, 50), "float32")

    def drop():
        return to_numpy(layer(x, training=True))

    with dropout_seed(SEED):
        first, second = drop(), drop()
        with dropout_seed(SEED):
            np.testing.assert_array_equal(drop(), first)
        assert (drop() != second).any()
    with dropout_seed(SEED):
        np.testing.assert_array_equal(drop(), first)
        np.testing.assert_array_equal(drop(), second)
    assert (first != second).any()
    assert (drop() != drop()).any()


def test_scopes_in_scopes_hand_out_other_seeds():
    draw = Dropout(0.5, seed=3).seed_generator.next
    drawn = []

    def opened(depth):
        for _ in range(3):
            seed = draw()
            if depth:
                with dropout_seed(seed, dropout_depth() + 1):
                    opened(depth - 1)
            else:
                drawn.append(tuple(to_numpy(seed).tolist()))

    with dropout_seed(SEED):
        opened(3)
    assert len(drawn) == len(set(drawn)) == 81
