"""VisionTransformer: equations, options, training, files, bad input."""

import keras
import numpy as np
import pytest
from keras import ops

from keras_attn import explain
from keras_attn.models import (
    ImageCaptioner,
    SequenceClassifier,
    VisionTransformer,
)
from tests.helpers.arrays import to_numpy
from tests.helpers.cases import once
from tests.helpers.contract import randomize

SIZES = {"num_layers": 1, "num_heads": 2, "hidden_dim": 8}
RNG = np.random.default_rng(0)
IMAGES = RNG.normal(size=(3, 4, 6, 3)).astype("float32")


def tiny(**kwargs):
    sizes = {**SIZES, "intermediate_dim": 12, "patch_size": 2}
    return VisionTransformer((4, 6, 3), **sizes | kwargs)


@pytest.mark.every_backend
def test_patches_are_rows_of_the_image():
    """Row by row, each with its own position."""
    model = randomize(tiny(pooling="mean"), scale=0.4)
    embedding = model._embedding
    found = to_numpy(embedding(IMAGES))
    kernel, bias = map(to_numpy, embedding._projection.weights)
    positions = to_numpy(embedding._positions)
    for number in range(6):
        row, column = divmod(number, 3)
        patch = IMAGES[:, 2 * row : 2 * row + 2, 2 * column : 2 * column + 2]
        expected = patch.reshape(3, -1) @ kernel + bias + positions[number]
        np.testing.assert_allclose(found[:, number], expected, atol=1e-5)
    assert model.grid_size == (2, 3) and model.num_tokens == 0


@pytest.mark.every_backend
def test_mean_pooling():
    model = randomize(tiny(pooling="mean", num_classes=4), scale=0.4)
    vectors, positions = model.encode(IMAGES)
    kernel, bias = map(to_numpy, model._classifier.weights)
    expected = to_numpy(vectors).mean(1) @ kernel + bias
    np.testing.assert_allclose(to_numpy(model(IMAGES)), expected, atol=1e-5)
    assert to_numpy(positions).tolist() == 3 * [[0, 1, 2, 3, 4, 5]]


@pytest.mark.every_backend
@pytest.mark.parametrize(
    "options",
    [
        {"pooling": "mean", "layer_scale": 0.1, "stochastic_depth": 0.2},
        *once(
            [
                {"distillation_token": True, "distillation_classifier": True},
                {
                    "normalization": "rms_norm",
                    "dropout": 0.1,
                    "qk_norm": "head",
                },
            ]
        ),
    ],
)
def test_learns_which_half_is_bright_and_its_file(options, tmp_path):
    """The class is the half of the image that is brighter."""
    keras.utils.set_random_seed(1)
    model = tiny(num_classes=2, **options)
    labels = RNG.integers(0, 2, 64)
    images = RNG.normal(scale=0.1, size=(64, 4, 6, 3)).astype("float32")
    images[labels == 0, :2] += 1
    images[labels == 1, 2:] += 1
    model.compile(
        keras.optimizers.Adam(0.02),
        keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        metrics=["accuracy"],
    )
    model.fit(images, labels, batch_size=16, epochs=8, verbose=0)
    assert model.evaluate(images, labels, verbose=0)[1] > 0.95
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    np.testing.assert_allclose(
        loaded.predict(images, verbose=0),
        model.predict(images, verbose=0),
        atol=1e-5,
    )
    assert loaded.get_config() == model.get_config()


@pytest.mark.every_backend
def test_another_image_size_interpolates_positions():
    model = tiny(num_classes=3)
    for height, width in ((4, 6), (8, 6), (2, 10)):
        shape = (2, height, width, 3)
        assert tuple(model(np.zeros(shape, "float32")).shape) == (2, 3)
        assert model.compute_output_shape(shape) == (2, 3)
    encoder = tiny()
    shape = encoder.compute_output_shape((None, 8, 6, 3))
    assert shape == (None, 13, 8)
    assert tuple(encoder(np.zeros((1, 8, 6, 3))).shape) == (1, 13, 8)


def test_half_precision():
    model = tiny(num_classes=3, dtype="mixed_bfloat16")
    logits = model(IMAGES)
    assert keras.backend.standardize_dtype(logits.dtype) == "bfloat16"


def test_quantization():
    """Of every kernel, patches included; calibration is for texts."""
    model = randomize(tiny(num_classes=3), scale=0.2)
    before = to_numpy(model(IMAGES))
    texts = keras.quantizers.GPTQConfig(dataset=[[1, 2]], tokenizer=None)
    with pytest.raises(ValueError, match="VisionTransformer"):
        model.quantize(config=texts)
    model.quantize("int8")
    kernels = [w for w in model.weights if w.path.endswith("kernel")]
    assert {w.dtype for w in kernels} == {"int8"}
    assert len(kernels) == 1 + 4 + 2 + 1
    np.testing.assert_allclose(to_numpy(model(IMAGES)), before, atol=0.05)


@pytest.mark.every_backend
def test_encodes_images_for_captions(tmp_path):
    encoder = tiny(num_classes=None, distillation_token=True)
    model = randomize(
        ImageCaptioner(11, (4, 6, 3), hidden_dim=8, encoder=encoder), scale=0.4
    )
    assert model.grid_size == (2, 3)
    images = RNG.integers(0, 256, (2, 4, 6, 3)).astype("uint8")
    (memory, positions), _ = model.encode(images)
    expected = to_numpy(encoder(images / np.float32(127.5) - 1))[:, 2:]
    np.testing.assert_allclose(to_numpy(memory), expected, atol=1e-4)
    assert tuple(positions.shape) == (2, 6)
    captions = model.generate(images, 3, return_weights=True)
    assert captions.weights.shape == (2, 1, 1, 1, 3, 6)
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    target = np.array([[1, 5], [1, 6]])
    np.testing.assert_allclose(
        to_numpy(loaded((images, target))),
        to_numpy(model((images, target))),
        atol=1e-5,
    )


def test_captions_need_the_same_sizes():
    for values, message in (
        ({"encoder": tiny(), "hidden_dim": 4}, "must have hidden_dim=4"),
        (
            {"encoder": tiny(), "hidden_dim": 8, "image_shape": (4, 8, 3)},
            r"must have image_shape=\(4, 8, 3\)",
        ),
        ({"encoder": "vit"}, "`encoder` must be a `VisionTransformer`"),
    ):
        arguments = {"image_shape": (4, 6, 3)} | values
        with pytest.raises(ValueError, match=message):
            ImageCaptioner(11, **arguments)


def test_rise_on_patches():
    """Without blocks, a vector is that of its patch, which RISE finds."""
    model = randomize(tiny(pooling="mean"), scale=0.4)
    model._blocks = []
    image = IMAGES[0]
    expected = to_numpy(model.encode(image[None])[0])[:, 4]

    def similarity(images):
        vectors = to_numpy(model.encode(images)[0])[:, 4]
        return np.exp(-np.square(vectors - expected).sum(-1, keepdims=True))

    masks = explain.PatchMasks(grid=model.grid_size)
    options = {"num_masks": 2000, "verbose": 0}
    saliency = explain.rise(similarity, image, masks, **options)
    # (2, 3), by patch.
    means = saliency[0].reshape(2, 2, 3, 2).mean((1, 3))
    assert means.argmax() == 4


def test_is_an_encoder_of_other_models():
    model = SequenceClassifier(tiny(), num_classes=3)
    assert tuple(model(IMAGES).shape) == (3, 3)


@pytest.mark.parametrize(
    "values, message",
    [
        ({"image_shape": (4, 7, 3)}, r"`image_shape\[1\]` must be a multiple"),
        ({"image_shape": (4, 6)}, "three integers"),
        ({"patch_size": 0}, "`patch_size` must be a positive"),
        ({"pooling": "max"}, "`pooling` must be one of"),
        (
            {"pooling": "mean", "distillation_token": True},
            "`pooling` must be 'token'",
        ),
        ({"distillation_classifier": True}, "requires `distillation_token`"),
        ({"num_classes": 0}, "`num_classes` must be a positive"),
        ({"num_heads": 3}, "`num_heads` must divide"),
    ],
)
def test_invalid_arguments_raise(values, message):
    arguments = {
        **{"image_shape": (4, 6, 3), "patch_size": 2, "intermediate_dim": 12},
        **SIZES,
    }
    with pytest.raises(ValueError, match=message):
        VisionTransformer(**arguments | values)


@pytest.mark.parametrize(
    "shape", [(1, 4, 6), (1, 4, 6, 1), (1, 5, 6, 3), (1, 0, 6, 3), (0, 4, 6, 3)]
)
def test_invalid_images_raise(shape):
    with pytest.raises(ValueError, match="`inputs` must"):
        tiny()(np.zeros(shape, "float32"))


def test_unknown_sizes_raise():
    with pytest.raises(ValueError, match="known multiples"):
        tiny()(keras.Input((None, None, 3)))
    assert tuple(tiny()(keras.Input((4, 6, 3))).shape) == (None, 7, 8)


def test_gradients_reach_all_weights():
    model = tiny(
        num_classes=2, distillation_token=True, distillation_classifier=True
    )
    before = [to_numpy(ops.copy(w)) for w in model.weights]
    model.compile("sgd", "mse")
    model.train_on_batch(IMAGES, RNG.normal(size=(3, 2)))
    for weight, old in zip(model.weights, before, strict=True):
        assert "key/bias" in weight.path or (
            np.abs(to_numpy(weight) - old).max() > 0
        ), weight.path
