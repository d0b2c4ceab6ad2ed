"""Rematerialized layers use the same dropout mask in both runs."""

import keras
import numpy as np
import pytest
from keras import ops

from keras_attn.backend import inspection
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
from tests.helpers.arrays import to_numpy
from tests.helpers.cases import once
from tests.helpers.contract import randomize
from tests.helpers.weight_gradients import layer_gradients, weighted_sum

RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(2, 5, 8)).astype("float32")
MEMORY = RANDOM.normal(size=(2, 4, 8)).astype("float32")
UPSTREAM = RANDOM.normal(size=X.shape).astype("float32")
MASK = np.array([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0]], "bool")
MEMORY_MASK = np.array([[1, 1, 1, 0], [1, 1, 1, 1]], "bool")
SEED = np.array([7, 11], "uint32")

DROPOUT = {
    # Smooth, for finite differences.
    "activation": "gelu",
    "dropout": 0.3,
    "attention_dropout": 0.3,
    "activation_dropout": 0.3,
}
LAYERS = {
    "encoder block": lambda: EncoderBlock(
        num_heads=2, intermediate_dim=12, **DROPOUT
    ),
    "pre-norm": lambda: EncoderBlock(
        num_heads=2, intermediate_dim=12, normalize_first=True, **DROPOUT
    ),
    "decoder block": lambda: DecoderBlock(
        num_heads=2, intermediate_dim=12, **DROPOUT
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
    """Returns the inputs and the masks, by argument, of a layer."""
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
    """Returns the gradients of inputs and weights."""

    def loss(*tensors):
        return weighted_sum(call(*tensors), UPSTREAM)

    if keras.backend.backend() != "tensorflow":
        return layer_gradients(layer, loss, *inputs)
    # On TensorFlow, rematerialized functions have gradients for variables and
    # arguments only, but `layer_gradients` replaces variables by tensors.
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


@pytest.mark.every_backend
@every_layer
def test_keras_remat(name):
    inputs, masks = inputs_of(name)
    layer = built(name)

    def run(seed, *tensors):
        with dropout_seed(seed):
            return layer(*tensors, training=True, **masks)

    seed = ops.convert_to_tensor(SEED, dtype="int32")
    plain = gradients_of(layer, lambda *x: run(seed, *x), inputs)
    rematerialized = gradients_of(
        layer, lambda *x: keras.remat(run)(seed, *x), inputs
    )
    assert_same(plain, rematerialized)
    # Another dropout mask gives other gradients.
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
def test_remat_scope(name):
    """A scope handles seeds, implicit masks and keyword arguments."""
    inputs, masks = inputs_of(name)
    with keras.RematScope("full"):
        rematerialized = built(name)
    plain = built(name)
    plain.set_weights(rematerialized.get_weights())
    seed = ops.convert_to_tensor(SEED, dtype="int32")

    def run(layer, *tensors):
        # The outer scope sets the seed; the rematerialized layer derives its
        # own seed from it.
        with dropout_seed(seed):
            return layer(*masked(tensors, masks), training=True)

    found = gradients_of(
        rematerialized, lambda *x: run(rematerialized, *x), inputs
    )
    # The layer drew the first seed of the scope.
    with dropout_seed(seed):
        first = first_seed(plain)

    def expected(*tensors):
        with dropout_seed(first):
            return plain(*masked(tensors, masks), training=True)

    if name.endswith("attention"):
        assert_same(gradients_of(plain, expected, inputs), found)
    else:
        # Rematerialized sublayers derive further seeds, so the plain layer is
        # not comparable; check by finite differences.
        assert_differences(
            rematerialized, lambda *x: run(rematerialized, *x), inputs, found
        )


@pytest.mark.one_backend("torch")
@every_layer
def test_a_seed_that_cannot_be_read(name, monkeypatch):
    """On an accelerator, PyTorch draws from a hash of the seed."""
    monkeypatch.setattr(inspection, "is_on_host", lambda tensor: False)
    test_keras_remat(name)
    test_remat_scope(name)


@pytest.mark.every_backend
@pytest.mark.parametrize("name", LAYERS)
def test_inference_draws_no_seeds(name):
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
    """Asserts that the gradients equal finite differences of the output."""
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


@pytest.mark.every_backend
def test_fit_under_a_remat_scope():
    """Compiled training, without leaked tracers on JAX or TensorFlow errors."""
    ids = keras.Input((5,), dtype="int32")
    x = keras.layers.Embedding(9, 8, mask_zero=True)(ids)
    # On TensorFlow, Keras's layers under a RematScope fail in `fit`.
    with keras.RematScope("full"):
        x = EncoderBlock(num_heads=2, intermediate_dim=12, **DROPOUT)(x)
        x = DecoderBlock(num_heads=2, intermediate_dim=12, **DROPOUT)(x, x)
    model = keras.Model(ids, keras.layers.Dense(1)(x))
    model.compile(keras.optimizers.Adam(0.03), "mse")
    data = RANDOM.integers(1, 9, (32, 5)).astype("int32")
    losses = model.fit(
        data, (data > 4)[..., None].astype("float32"), epochs=12, verbose=0
    ).history["loss"]
    assert losses[-1] < 0.7 * losses[0]


class ReadsTraining(keras.Model):
    """A model of Keras alone, whose `call` depends on `training`."""

    def __init__(self):
        super().__init__()
        self.dense = keras.layers.Dense(1)

    def call(self, inputs, training=False):
        return self.dense(inputs) if training else inputs[..., :1]


@pytest.mark.skipif(
    keras.backend.backend() == "torch", reason="it works on PyTorch"
)
def test_why_models_are_not_rematerialized():
    """Mode "full" makes `training` a tensor on JAX; TensorFlow refuses it.

    If this fails, Keras does better than docs/guides/memory.md says.
    """
    with keras.RematScope("full"):
        model = ReadsTraining()
    model.dense.build((None, 2))
    model.built = True
    model.compile("sgd", "mse")
    failure = "_error_repr|supports keywords arguments only"
    with pytest.raises((ValueError, RuntimeError), match=failure):
        model.fit(np.ones((2, 2)), np.ones((2, 1)), verbose=0)


def test_seed_scope_sets_and_restores_seeds():
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


def test_nested_scopes_give_distinct_seeds():
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
