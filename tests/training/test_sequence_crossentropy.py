"""SequenceCrossentropy against torch and a float64 NumPy loop."""

import json

import keras
import numpy as np
import pytest

from keras_attn.training import (
    Perplexity,
    SequenceCrossentropy,
    TokenAccuracy,
)
from tests.helpers.cases import once
from tests.helpers.gradients import gradient

torch = pytest.importorskip("torch")


def reference(labels, logits, smoothing=0.0, pad_id=0):
    """Returns losses per token, 0 at padding, computed one class at a time."""
    losses = np.zeros(labels.shape)
    for index in np.ndindex(*labels.shape):
        if labels[index] == pad_id:
            continue
        z = logits[index].astype("float64")
        log_p = z - z.max() - np.log(np.sum(np.exp(z - z.max())))
        size = len(z)
        for v in range(size):
            target = smoothing / size
            if v == labels[index]:
                target += 1 - smoothing
            losses[index] -= target * log_p[v]
    return losses


def batch(seed=0, shape=(3, 7), size=11, pad_id=0):
    rng = np.random.default_rng(seed)
    logits = 3 * rng.normal(size=(*shape, size)).astype("float32")
    labels = rng.integers(1, size, shape).astype("int32")
    for row, length in enumerate((7, 4, 1)):
        labels[row, length:] = pad_id
    return labels, logits


def by_torch(labels, logits, smoothing, pad_id, weight=None, reduction="mean"):
    """Returns value and gradient of torch's loss for float64 logits."""
    x = torch.tensor(logits, dtype=torch.float64, requires_grad=True)
    if weight is not None:
        weight = torch.tensor(weight, dtype=torch.float64)
    loss = torch.nn.CrossEntropyLoss(
        weight,
        label_smoothing=smoothing,
        ignore_index=pad_id,
        reduction=reduction,
    )(x.reshape(-1, x.shape[-1]), torch.tensor(labels).long().reshape(-1))
    loss.sum().backward()
    return loss.detach().numpy(), x.grad.numpy()


@pytest.mark.every_backend
@pytest.mark.parametrize("pad_id", [0, 3, -100])
@pytest.mark.parametrize("smoothing", [0.0, 0.1, 0.9])
def test_equals_torch_in_value_and_gradient(smoothing, pad_id):
    labels, logits = batch(pad_id=pad_id)
    loss = SequenceCrossentropy(smoothing, pad_id)
    value, slope = by_torch(labels, logits, smoothing, pad_id)
    np.testing.assert_allclose(float(loss(labels, logits)), value, rtol=1e-6)
    (found,) = gradient(lambda x: loss(labels, x), logits)
    np.testing.assert_allclose(found, slope, rtol=1e-5, atol=1e-7)


WEIGHTS = np.linspace(0.0, 3.0, 11)


@pytest.mark.every_backend
@pytest.mark.parametrize("pad_id", [0, -100])
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("reduction", ["mean", *once(["sum", None])])
def test_class_weights_equal_torch(smoothing, pad_id, reduction):
    labels, logits = batch(pad_id=pad_id)
    labels[0, 1] = 0  # a class of weight 0
    value, slope = by_torch(
        labels, logits, smoothing, pad_id, WEIGHTS, reduction or "none"
    )
    dictionary = dict(enumerate(WEIGHTS.tolist()))
    for given in (WEIGHTS, dictionary):
        loss = SequenceCrossentropy(
            smoothing, pad_id, reduction, class_weight=given
        )
        found = keras.ops.convert_to_numpy(loss(labels, logits))
        np.testing.assert_allclose(found.reshape(value.shape), value, rtol=2e-6)
        (found,) = gradient(
            lambda x, loss=loss: keras.ops.sum(loss(labels, x)), logits
        )
        np.testing.assert_allclose(found, slope, rtol=1e-5, atol=1e-7)


def test_missing_class_weights_are_one():
    labels, logits = batch()
    weight = np.ones(11)
    weight[4], weight[7] = 5.0, 0.25
    loss = SequenceCrossentropy(0.1, class_weight={7: 0.25, 4: 5})
    value, _ = by_torch(labels, logits, 0.1, 0, weight)
    np.testing.assert_allclose(float(loss(labels, logits)), value, rtol=1e-6)


@pytest.mark.parametrize(
    "reduction", ["sum_over_batch_size", "mean_with_sample_weight"]
)
def test_class_weights_multiply_sample_weights(reduction):
    labels, logits = batch()
    rng = np.random.default_rng(2)
    sample_weight = rng.uniform(0.1, 3, (3, 7)).astype("float32")
    losses, _ = by_torch(labels, logits, 0.1, 0, WEIGHTS, "none")
    of_labels = WEIGHTS[labels] * (labels != 0)
    divisor = of_labels
    if reduction == "mean_with_sample_weight":
        divisor = of_labels * sample_weight
    expected = (losses.reshape(3, 7) * sample_weight).sum() / divisor.sum()
    loss = SequenceCrossentropy(0.1, 0, reduction, class_weight=WEIGHTS)
    found = float(loss(labels, logits, sample_weight))
    np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_infinite_losses_of_classes_of_weight_zero_are_ignored():
    labels, logits = batch(pad_id=-100)
    logits[labels == 3, 3] = -np.inf
    weight = np.ones(11)
    weight[3] = 0.0
    kept = np.where(labels == 3, -100, labels)
    value, slope = by_torch(kept, logits, 0.0, -100)
    loss = SequenceCrossentropy(pad_id=-100, class_weight=weight)
    np.testing.assert_allclose(float(loss(labels, logits)), value, rtol=1e-6)
    (found,) = gradient(lambda x: loss(labels, x), logits)
    np.testing.assert_allclose(found, slope, rtol=1e-5, atol=1e-7)


def test_class_weights_in_fit_and_evaluate():
    labels, _ = batch()
    tokens = np.roll(labels, 1, axis=1)
    model = language_model(True)
    model.compile(
        keras.optimizers.SGD(0.5),
        SequenceCrossentropy(0.1, class_weight=WEIGHTS),
    )
    value, slope = by_torch(
        labels, model.predict(tokens, verbose=0), 0.1, 0, WEIGHTS
    )
    bias = model.get_weights()[2]
    for found in (
        model.evaluate(tokens, labels, batch_size=3, verbose=0),
        model.test_on_batch(tokens, labels),
        model.train_on_batch(tokens, labels),
    ):
        np.testing.assert_allclose(found, value, rtol=1e-5)
    np.testing.assert_allclose(
        model.get_weights()[2], bias - 0.5 * slope.sum((0, 1)), atol=1e-6
    )


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_token_losses_equal_the_loop(smoothing):
    labels, logits = batch()
    loss = SequenceCrossentropy(smoothing, reduction=None)
    found = keras.ops.convert_to_numpy(loss(labels, logits))
    np.testing.assert_allclose(
        found, reference(labels, logits, smoothing), rtol=1e-6
    )


def test_nan_at_padding_has_no_influence():
    labels, logits = batch()
    loss = SequenceCrossentropy(0.1)
    value, slope = by_torch(labels, logits, 0.1, 0)
    padding = labels == 0
    for poison in (np.nan, np.inf, -np.inf):
        corrupted = logits.copy()
        corrupted[padding] = poison
        corrupted[padding, 0] = 1.0
        np.testing.assert_allclose(
            float(loss(labels, corrupted)), value, rtol=1e-6
        )
        (found,) = gradient(lambda x: loss(labels, x), corrupted)
        assert np.all(found[padding] == 0)
        np.testing.assert_allclose(found, slope, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize(
    "reduction",
    ["sum_over_batch_size", "mean", "mean_with_sample_weight", "sum"],
)
@pytest.mark.parametrize("poison", [0.0, np.nan])
def test_fully_padded_batch_has_zero_loss(reduction, poison):
    _, logits = batch()
    labels = np.zeros((3, 7), "int32")
    loss = SequenceCrossentropy(0.1, reduction=reduction)
    logits = logits + np.float32(poison)
    assert float(loss(labels, logits)) == 0.0
    (found,) = gradient(lambda x: loss(labels, x), logits)
    assert np.all(found == 0)


@pytest.mark.parametrize("weights", [None, [1.0, 2.0, 3.0]])
@pytest.mark.parametrize("shape", [(0, 7), (3, 0), (0, 0)])
def test_zero_length_axes(shape, weights):
    labels = np.zeros(shape, "int32")
    logits = np.zeros((*shape, 3), "float32")
    for reduction in ("mean", "mean_with_sample_weight", "sum", None):
        loss = SequenceCrossentropy(0.1, -1, reduction, class_weight=weights)
        for weight in (None, np.ones(shape[:1]), np.ones(shape)):
            found = keras.ops.convert_to_numpy(loss(labels, logits, weight))
            assert found.dtype == "float32"
            assert found.shape == (() if reduction else shape)
            assert np.all(found == 0)
        (found,) = gradient(
            lambda x, loss=loss: keras.ops.sum(loss(labels, x)), logits
        )
        assert found.shape == logits.shape


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_half_precision_logits_of_large_magnitude(dtype):
    labels, _ = batch()
    rng = np.random.default_rng(1)
    logits = rng.choice([-60000.0, 0.0, 60000.0], size=(3, 7, 11))
    half = keras.ops.cast(logits, dtype)
    exact = keras.ops.convert_to_numpy(keras.ops.cast(half, "float32"))
    value, slope = by_torch(labels, exact, 0.1, 0)
    loss = SequenceCrossentropy(0.1)
    np.testing.assert_allclose(float(loss(labels, half)), value, rtol=1e-6)
    (found,) = gradient(lambda x: loss(labels, x), half)
    found = found.astype("float32")
    np.testing.assert_allclose(found, slope, atol=1e-3)
    assert np.all(found[labels == 0] == 0)


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_large_logits_keep_precision(smoothing):
    labels, logits = batch()
    logits = np.float32(60000) + np.round(logits)
    value, slope = by_torch(labels, logits, smoothing, 0)
    loss = SequenceCrossentropy(smoothing)
    np.testing.assert_allclose(float(loss(labels, logits)), value, rtol=1e-6)
    (found,) = gradient(lambda x: loss(labels, x), logits)
    np.testing.assert_allclose(found, slope, rtol=1e-5, atol=1e-7)


def test_logits_may_be_minus_infinity():
    labels, logits = batch()
    logits[..., 0] = -np.inf
    value, slope = by_torch(labels, logits, 0.0, 0)
    loss = SequenceCrossentropy()
    np.testing.assert_allclose(float(loss(labels, logits)), value, rtol=1e-6)
    (found,) = gradient(lambda x: loss(labels, x), logits)
    np.testing.assert_allclose(found, slope, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("form", ["(B,)", "(B, 1)", "(B, T)"])
@pytest.mark.parametrize(
    "reduction",
    ["sum_over_batch_size", "mean", "mean_with_sample_weight", "sum", None],
)
def test_sample_weight(form, reduction):
    labels, logits = batch()
    rng = np.random.default_rng(2)
    shape = {"(B,)": (3,), "(B, 1)": (3, 1), "(B, T)": (3, 7)}[form]
    weight = rng.uniform(0.1, 3, shape).astype("float32")
    full = np.broadcast_to(
        weight[:, None] if form == "(B,)" else weight, (3, 7)
    )
    losses = reference(labels, logits, 0.1) * full
    expected = {
        "sum_over_batch_size": losses.sum() / (labels != 0).sum(),
        "mean": losses.sum() / (labels != 0).sum(),
        "mean_with_sample_weight": losses.sum() / full[labels != 0].sum(),
        "sum": losses.sum(),
        None: losses,
    }[reduction]
    loss = SequenceCrossentropy(0.1, reduction=reduction)
    found = keras.ops.convert_to_numpy(loss(labels, logits, weight))
    np.testing.assert_allclose(found, expected, rtol=2e-6)


def test_sample_weights_at_padding_are_ignored():
    labels, logits = batch()
    weight = np.where(labels == 0, np.nan, 1.0)
    loss = SequenceCrossentropy(reduction="mean_with_sample_weight")
    np.testing.assert_allclose(
        float(loss(labels, logits, weight)),
        float(loss(labels, logits)),
        rtol=1e-6,
    )


def test_keras_mask_of_logits_is_ignored():
    """The mask of the inputs is not the mask of the labels."""
    labels, _ = batch()
    tokens = np.roll(labels, 1, axis=1)
    tokens[:, 0] = 0  # a start token that equals the pad id
    embedding = keras.layers.Embedding(11, 11, mask_zero=True)
    logits = embedding(tokens)
    assert logits._keras_mask is not None
    expected = reference(labels, keras.ops.convert_to_numpy(logits))
    found = keras.ops.convert_to_numpy(SequenceCrossentropy()(labels, logits))
    np.testing.assert_allclose(
        found, expected.sum() / (labels != 0).sum(), rtol=1e-6
    )
    assert logits._keras_mask is not None


def language_model(mask_zero, dtype="float32"):
    model = keras.Sequential(
        [
            keras.Input((7,), dtype="int32"),
            keras.layers.Embedding(11, 6, mask_zero=mask_zero, dtype=dtype),
            keras.layers.Dense(11, dtype=dtype),
        ]
    )
    rng = np.random.default_rng(3)
    model.set_weights([rng.normal(size=w.shape) for w in model.weights])
    return model


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("mask_zero", [False, True])
def test_fit_takes_the_gradient_step_of_the_loss(mask_zero, weighted):
    labels, _ = batch()
    tokens = np.roll(labels, 1, axis=1)
    weight = np.float32([1, 2, 3]) if weighted else None
    model = language_model(mask_zero)
    loss = SequenceCrossentropy(0.1)
    model.compile(keras.optimizers.SGD(0.5), loss)
    table, kernel, bias = model.get_weights()

    def by_hand(kernel, bias):
        logits = keras.ops.matmul(table[tokens], kernel) + bias
        return loss(labels, logits, weight)

    slopes = gradient(by_hand, kernel, bias)
    logits = model.predict(tokens, verbose=0)
    losses = reference(labels, logits, 0.1)
    if weighted:
        losses *= weight[:, None]
    history = model.fit(
        tokens, labels, sample_weight=weight, batch_size=3, verbose=0
    )
    np.testing.assert_allclose(
        history.history["loss"][0],
        losses.sum() / (labels != 0).sum(),
        rtol=1e-5,
    )
    _, new_kernel, new_bias = model.get_weights()
    np.testing.assert_allclose(new_kernel, kernel - 0.5 * slopes[0], atol=1e-6)
    np.testing.assert_allclose(new_bias, bias - 0.5 * slopes[1], atol=1e-6)


@pytest.mark.every_backend
def test_sample_weights_of_changing_rank_in_compiled_steps():
    """TensorFlow generalizes the step to sample weights of any rank."""
    labels, _ = batch()
    tokens = np.roll(labels, 1, axis=1)
    model = language_model(False)
    metrics = [TokenAccuracy(), Perplexity()]
    model.compile(
        keras.optimizers.SGD(0.0),
        SequenceCrossentropy(reduction="mean_with_sample_weight"),
        weighted_metrics=metrics,
    )
    logits = model.predict(tokens, verbose=0)
    losses = reference(labels, logits)
    hits = np.argmax(logits, -1) == labels
    rng = np.random.default_rng(4)
    for shape in [(3,), (3, 7), (3, 1), (3,), (3, 7)]:
        weight = rng.uniform(0.5, 2, shape).astype("float32")
        full = weight if len(shape) == 2 else weight[:, None]
        full = full * (labels != 0)
        mean = (losses * full).sum() / full.sum()
        expected = mean, (hits * full).sum() / full.sum(), np.exp(mean)
        for found in (
            model.evaluate(tokens, labels, sample_weight=weight, verbose=0),
            model.train_on_batch(tokens, labels, weight),
        ):
            np.testing.assert_allclose(found, expected, rtol=1e-5)
    history = model.fit(tokens, labels, sample_weight=weight, verbose=0).history
    np.testing.assert_allclose(history["loss"], expected[:1], rtol=1e-5)


class Pairs(keras.utils.PyDataset):
    """Rows of vectors with the index of one vector; one length per batch."""

    def __len__(self):
        return 2

    def __getitem__(self, index):
        rng = np.random.default_rng(index)
        rows = rng.normal(size=(3, 4 + index, 2)).astype("float32")
        return rows, np.array([[1], [0], [3]], "int32")


@pytest.mark.parametrize(
    "smoothing, weighted", [(0.0, False), (0.1, False), (0.1, True)]
)
def test_classes_are_positions_in_rows_of_any_length(smoothing, weighted):
    pointer = keras.Sequential(
        [
            keras.layers.Dense(1, use_bias=False),
            keras.layers.Permute((2, 1)),  # (B, 1, T): one class per position
        ]
    )
    batches = Pairs()
    pointer.build((None, None, 2))
    pointer.compile(
        keras.optimizers.SGD(0.5),
        SequenceCrossentropy(
            smoothing, pad_id=-1, class_weight={1: 3.0} if weighted else None
        ),
    )
    kernel = pointer.get_weights()[0].astype("float64")
    for index in range(len(batches)):
        rows, labels = batches[index]
        logits = (rows @ kernel).transpose(0, 2, 1)
        weight = np.ones(logits.shape[-1])
        weight[1] = 3.0 if weighted else 1.0
        _, slope = by_torch(labels, logits, smoothing, -1, weight)
        kernel = kernel - 0.5 * np.einsum("btd,bot->do", rows, slope)
    pointer.fit(batches, shuffle=False, verbose=0)
    np.testing.assert_allclose(pointer.get_weights()[0], kernel, rtol=1e-5)


def test_fit_under_loss_scaling():
    labels, _ = batch()
    tokens = np.roll(labels, 1, axis=1)
    changes = []
    for dtype in ("float32", "mixed_float16"):
        model = language_model(True, dtype)
        optimizer = keras.optimizers.SGD(0.5)
        if dtype == "mixed_float16":
            optimizer = keras.optimizers.LossScaleOptimizer(
                optimizer, initial_scale=1024.0
            )
        model.compile(optimizer, SequenceCrossentropy(0.1))
        before = model.get_weights()
        model.fit(tokens, labels, batch_size=3, verbose=0)
        after = model.get_weights()
        changes.append([a - b for a, b in zip(after, before, strict=True)])
    for single, mixed in zip(*changes, strict=True):
        assert np.abs(single).max() > 1e-3
        np.testing.assert_allclose(mixed, single, atol=2e-3)


def test_loss_is_saved_with_a_compiled_model(tmp_path):
    labels, _ = batch()
    model = language_model(True)
    model.compile("sgd", SequenceCrossentropy(0.2, pad_id=0, name="nats"))
    expected = model.evaluate(labels, labels, verbose=0)
    model.save(tmp_path / "model.keras")
    again = keras.saving.load_model(tmp_path / "model.keras")
    assert again.loss.get_config() == model.loss.get_config()
    np.testing.assert_allclose(
        again.evaluate(labels, labels, verbose=0), expected, rtol=1e-6
    )


def test_config_round_trips():
    loss = SequenceCrossentropy(0.2, pad_id=5, reduction="sum", name="nats")
    again = keras.losses.deserialize(keras.losses.serialize(loss))
    assert again.get_config() == loss.get_config()
    assert again.get_config() == {
        "label_smoothing": 0.2,
        "pad_id": 5,
        "reduction": "sum",
        "name": "nats",
        "class_weight": None,
    }


@pytest.mark.parametrize("weights", [[1.0, 0.0, 2.5], {3: 0.5, 1: 2.0}])
def test_class_weights_are_saved(weights):
    loss = SequenceCrossentropy(class_weight=weights)
    config = json.loads(json.dumps(keras.losses.serialize(loss)))
    assert keras.losses.deserialize(config).class_weight == weights
    assert loss.get_config()["class_weight"] == weights


@pytest.mark.parametrize("label", [11, -1])
def test_labels_outside_the_vocabulary_give_nan(label):
    labels, logits = batch()
    labels[0, 0] = label
    loss = SequenceCrossentropy(reduction=None)
    found = keras.ops.convert_to_numpy(loss(labels, logits))
    assert np.isnan(found[0, 0]) and np.isfinite(found.ravel()[1:]).all()
    assert np.isnan(float(SequenceCrossentropy()(labels, logits)))


@pytest.mark.skipif(
    keras.backend.backend() == "jax", reason="JAX has no 64-bit integers"
)
def test_wide_labels_do_not_wrap_around_to_padding():
    labels, logits = batch()
    labels = labels.astype("int64")
    labels[0, 0] = 2**32
    tensor = keras.ops.convert_to_tensor(labels)
    assert np.isnan(float(SequenceCrossentropy()(tensor, logits)))


INTEGERS = np.ones((3, 7), "int32")


@pytest.mark.parametrize(
    "labels, weight, message",
    [
        (np.ones((3, 7), "float32"), None, "`y_true` must hold integers"),
        (np.ones((3, 7), "complex64"), None, "`y_true` must hold integers"),
        (np.ones((3, 7), "bool"), None, "`y_true` must hold integers"),
        (np.ones((3, 6), "int32"), None, "`y_true` must have the shape"),
        (np.ones((3, 7, 1), "int32"), None, "`y_true` must have the shape"),
        (1, None, "`y_true` must have the shape"),
        (None, None, "`y_true` must be a tensor"),
        ("a", None, "`y_true` must be a tensor"),
        ([[1, 2], [3]], None, "`y_true` must have rows of equal length"),
        ([["a"]], None, r"`y_true` must be .* of numbers"),
        ([[2**40] * 7] * 3, None, "`y_true` must hold integers that fit"),
        (INTEGERS, np.ones(4), "`sample_weight` must give"),
        (INTEGERS, np.ones((3, 7, 1)), "`sample_weight` must give"),
        (INTEGERS, 2.0, "`sample_weight` must give"),
        (INTEGERS, "a", "`sample_weight` must be a tensor"),
        (INTEGERS, ["a"] * 3, r"`sample_weight` must be .* of numbers"),
        (INTEGERS, [1j] * 3, "`sample_weight` must hold real numbers"),
    ],
)
def test_invalid_inputs_raise(labels, weight, message):
    _, logits = batch()
    with pytest.raises(ValueError, match=message) as info:
        SequenceCrossentropy()(labels, logits, weight)
    assert "\n" not in str(info.value)


@pytest.mark.parametrize(
    "logits, message",
    [
        (None, "`y_pred` must be a tensor"),
        (np.ones((3, 7, 5), "int32"), "`y_pred` must hold floating-point"),
        (np.ones((3, 7, 5), "complex64"), "`y_pred` must hold floating-point"),
        (np.ones((3, 7, 0), "float32"), "`y_pred` must have at least one"),
        (np.float32(1), "`y_true` must have the shape"),
    ],
)
def test_invalid_logits_raise(logits, message):
    with pytest.raises(ValueError, match=message):
        SequenceCrossentropy()(INTEGERS, logits)


@pytest.mark.parametrize(
    "weights, message",
    [
        ([1.0] * 10, "one weight for each of the 11 classes .*: 10 weights"),
        ({2: 1.0, 11: 2.0}, r"`class_weight` must have keys in \[0, 11\).* 11"),
    ],
)
def test_class_weights_that_do_not_fit_raise(weights, message):
    with pytest.raises(ValueError, match=message):
        SequenceCrossentropy(class_weight=weights)(*batch())


@pytest.mark.parametrize(
    "arguments, name",
    [
        ({"label_smoothing": 1.0}, "label_smoothing"),
        ({"label_smoothing": -0.1}, "label_smoothing"),
        ({"pad_id": None}, "pad_id"),
        ({"pad_id": 0.0}, "pad_id"),
        ({"pad_id": "a"}, "pad_id"),
        ({"pad_id": 2**31}, "pad_id"),
        ({"reduction": "max"}, "reduction"),
        ({"reduction": ["sum"]}, "reduction"),
        ({"class_weight": 2.0}, "class_weight"),
        ({"class_weight": "ab"}, "class_weight"),
        ({"class_weight": []}, "class_weight"),
        ({"class_weight": {}}, "class_weight"),
        ({"class_weight": [1.0, -1.0]}, "class_weight"),
        ({"class_weight": [1.0, np.nan]}, "class_weight"),
        ({"class_weight": [1.0, None]}, "class_weight"),
        ({"class_weight": np.ones((1, 2))}, "class_weight"),
        ({"class_weight": {0: np.inf}}, "class_weight"),
        ({"class_weight": {-1: 1.0}}, "class_weight"),
        ({"class_weight": {"a": 1.0}}, "class_weight"),
        ({"class_weight": {1.5: 1.0}}, "class_weight"),
    ],
)
def test_invalid_arguments_raise(arguments, name):
    with pytest.raises(ValueError, match=f"`{name}` must"):
        SequenceCrossentropy(**arguments)
