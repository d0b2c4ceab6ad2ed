"""SequenceCrossentropy against torch and a float64 NumPy loop."""

import keras
import numpy as np
import pytest

from keras_attn.training import SequenceCrossentropy
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


def by_torch(labels, logits, smoothing, pad_id):
    """Returns value and gradient of torch's loss for float64 logits."""
    x = torch.tensor(logits, dtype=torch.float64, requires_grad=True)
    loss = torch.nn.CrossEntropyLoss(
        label_smoothing=smoothing, ignore_index=pad_id
    )(x.reshape(-1, x.shape[-1]), torch.tensor(labels).long().reshape(-1))
    loss.backward()
    return loss.item(), x.grad.numpy()


@pytest.mark.parametrize("pad_id", [0, 3, -100])
@pytest.mark.parametrize("smoothing", [0.0, 0.1, 0.9])
def test_equals_torch_in_value_and_gradient(smoothing, pad_id):
    labels, logits = batch(pad_id=pad_id)
    loss = SequenceCrossentropy(smoothing, pad_id)
    value, slope = by_torch(labels, logits, smoothing, pad_id)
    np.testing.assert_allclose(float(loss(labels, logits)), value, rtol=1e-6)
    (found,) = gradient(lambda x: loss(labels, x), logits)
    np.testing.assert_allclose(found, slope, rtol=1e-5, atol=1e-7)


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


class Pairs(keras.utils.PyDataset):
    """Rows of vectors with the index of one vector; one length per batch."""

    def __len__(self):
        return 2

    def __getitem__(self, index):
        rng = np.random.default_rng(index)
        rows = rng.normal(size=(3, 4 + index, 2)).astype("float32")
        return rows, np.array([[1], [0], [3]], "int32")


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_classes_are_positions_in_rows_of_any_length(smoothing):
    pointer = keras.Sequential(
        [
            keras.layers.Dense(1, use_bias=False),
            keras.layers.Permute((2, 1)),  # (B, 1, T): one class per position
        ]
    )
    batches = Pairs()
    pointer.build((None, None, 2))
    pointer.compile(
        keras.optimizers.SGD(0.5), SequenceCrossentropy(smoothing, pad_id=-1)
    )
    kernel = pointer.get_weights()[0].astype("float64")
    for index in range(len(batches)):
        rows, labels = batches[index]
        _, slope = by_torch(
            labels, (rows @ kernel).transpose(0, 2, 1), smoothing, -1
        )
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
    }


@pytest.mark.parametrize("label", [11, -1])
def test_labels_outside_the_vocabulary_give_nan(label):
    labels, logits = batch()
    labels[0, 0] = label
    assert np.isnan(float(SequenceCrossentropy()(labels, logits)))


@pytest.mark.parametrize(
    "labels, weight, message",
    [
        (np.ones((3, 7), "float32"), None, "`y_true` must hold integers"),
        (np.ones((3, 6), "int32"), None, "`y_true` must have the shape"),
        (np.ones((3, 7, 1), "int32"), None, "`y_true` must have the shape"),
        (np.ones((3, 7), "int32"), np.ones(4), "`sample_weight` must give"),
        (np.ones((3, 7), "int32"), 2.0, "`sample_weight` must give"),
    ],
)
def test_invalid_inputs_raise(labels, weight, message):
    _, logits = batch()
    with pytest.raises(ValueError, match=message):
        SequenceCrossentropy()(labels, logits, weight)


@pytest.mark.parametrize(
    "arguments, name",
    [
        ({"label_smoothing": 1.0}, "label_smoothing"),
        ({"label_smoothing": -0.1}, "label_smoothing"),
        ({"pad_id": None}, "pad_id"),
        ({"pad_id": 0.0}, "pad_id"),
    ],
)
def test_invalid_arguments_raise(arguments, name):
    with pytest.raises(ValueError, match=f"`{name}` must"):
        SequenceCrossentropy(**arguments)
