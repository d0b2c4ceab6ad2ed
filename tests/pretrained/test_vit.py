"""ViT and DeiT against transformers."""

import json

import keras
import numpy as np
import pytest
from keras import ops

from keras_attn import pretrained
from keras_attn.models import VisionTransformer
from tests.helpers.arrays import to_numpy
from tests.helpers.weight_gradients import layer_gradients, weighted_sum

torch = pytest.importorskip("torch")

import transformers

SIZES = {
    "hidden_size": 8,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 12,
    "image_size": 12,
    "patch_size": 4,
    "num_labels": 5,
}
ARCHITECTURES = (
    "DeiTForImageClassificationWithTeacher",
    "ViTForImageClassification",
    "ViTModel",
    "DeiTForImageClassification",
    "DeiTModel",
)
every_architecture = pytest.mark.parametrize("architecture", ARCHITECTURES)


def images(height=12, width=12):
    random = np.random.default_rng(0)
    return random.normal(size=(2, height, width, 3)).astype("float32")


def random_model(architecture, **config):
    """Returns a transformers model with random weights."""
    kind = architecture.partition("T")[0] + "TConfig"
    config = getattr(transformers, kind)(**SIZES | config)
    model = getattr(transformers, architecture)(config)
    draw = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for name, tensor in model.named_parameters():
            tensor.normal_(std=0.4, generator=draw)
            if "norm" in name and "weight" in name:
                tensor.add_(1.0)
    return model.eval()


def theirs_on(model, pixels):
    pixels = torch.from_numpy(pixels.transpose(0, 3, 1, 2).copy())
    found = model(pixels, interpolate_pos_encoding=True)
    return found.get("logits", found.get("last_hidden_state"))


@pytest.fixture
def load(tmp_path):
    def load(model, **kwargs):
        model.save_pretrained(tmp_path / "theirs")
        return pretrained.load(tmp_path / "theirs", **kwargs)

    return load


@pytest.mark.filterwarnings("ignore:.*heads that a VisionTransformer")
@pytest.mark.every_backend
@every_architecture
def test_same_outputs_and_gradients(architecture, load):
    theirs = random_model(architecture)
    ours = load(theirs)
    # The second size interpolates the positions.
    for pixels in images(), images(16, 8):
        with torch.no_grad():
            expected = theirs_on(theirs, pixels).numpy()
        np.testing.assert_allclose(
            to_numpy(ours(pixels)), expected, rtol=1e-5, atol=1e-5
        )
    # From the last call.
    direction = np.cos(np.arange(expected.size)).reshape(expected.shape)
    _, found = layer_gradients(
        ours, lambda: weighted_sum(ours(pixels), direction)
    )
    output = theirs_on(theirs, pixels)
    (output * torch.from_numpy(direction.astype("float32"))).sum().backward()
    names = dict(theirs.named_parameters())
    inside = (
        "" if architecture.endswith("Model") else f"{theirs.base_model_prefix}."
    )
    for path, name in (
        ("patch_embedding/positions", "embeddings.position_embeddings"),
        ("patch_embedding/class_token", "embeddings.cls_token"),
        ("block_0/self_attention/query/bias", "layers.0.attention.q_proj.bias"),
        ("norm/gamma", "layernorm.weight"),
    ):
        expected = names[inside + name].grad.numpy()
        np.testing.assert_allclose(
            found[path].reshape(expected.shape),
            expected,
            rtol=1e-3,
            atol=1e-4,
        )


@pytest.mark.filterwarnings("ignore:.*heads that a VisionTransformer")
@every_architecture
def test_round_trip(architecture, load, tmp_path):
    theirs = random_model(architecture, num_channels=1)
    ours = load(theirs)
    pretrained.save(ours, tmp_path / "ours")
    again = type(theirs).from_pretrained(tmp_path / "ours")
    expected = theirs.state_dict()
    for name, tensor in again.state_dict().items():
        if "pooler" not in name:  # our model has none
            torch.testing.assert_close(
                tensor, expected[name], rtol=0, atol=0, msg=name
            )
    back = pretrained.load(tmp_path / "ours")
    assert back.get_config() == ours.get_config() | {"name": back.name}


def test_head(load):
    """A classifier is skipped, or its absence is an error."""
    theirs = random_model("ViTForImageClassification")
    with pytest.warns(UserWarning, match=r"skipped: classifier\.bias"):
        encoder = load(theirs, head="encoder")
    assert encoder.num_classes is None
    with torch.no_grad():
        expected = theirs.vit(
            torch.from_numpy(images().transpose(0, 3, 1, 2).copy())
        ).last_hidden_state
    np.testing.assert_allclose(
        to_numpy(encoder(images())), expected.numpy(), rtol=1e-5, atol=1e-5
    )
    bare = random_model("ViTModel")
    with pytest.raises(ValueError, match=r"must hold a tensor `classifier"):
        load(bare, head="image_classification")


@pytest.mark.parametrize(
    "values, message",
    [
        ({"qkv_bias": False}, "`qkv_bias` in config.json must be true"),
        ({"image_size": [12, 16]}, "`image_size` in config.json"),
        ({"patch_size": 5}, r"image_shape\[0\]|projection.weight"),
        ({"image_size": 16}, r"position_embeddings.*\(1, 17, 8\)"),
        ({"hidden_act": "mish"}, "`hidden_act` in .* must be one of"),
        ({"num_channels": 1}, r"projection.weight.*\(8, 1, 4, 4\)"),
    ],
)
def test_invalid_config_raises(values, message, tmp_path):
    random_model("ViTForImageClassification").save_pretrained(tmp_path)
    path = tmp_path / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | values))
    with pytest.raises(ValueError, match=message) as info:
        pretrained.load(tmp_path)
    assert "\n" not in str(info.value)


@pytest.mark.parametrize(
    "values, message",
    [
        ({"pooling": "mean"}, "must have pooling='token'"),
        ({"layer_scale": 0.1}, "must have layer_scale=None"),
        ({"image_shape": (4, 8, 3)}, "equal height and width"),
    ],
)
def test_other_models_are_not_saved(values, message, tmp_path):
    sizes = {
        **{"image_shape": (4, 4, 3), "patch_size": 4, "num_layers": 1},
        **{"num_heads": 1, "hidden_dim": 4, "intermediate_dim": 4},
    }
    model = VisionTransformer(**sizes | values)
    with pytest.raises(ValueError, match=message):
        pretrained.save(model, tmp_path)
    assert not list(tmp_path.iterdir())


def test_images_are_not_resized_by_keras():
    """Keras's bicubic resizing differs, as `bicubic_weights` explains."""
    from keras_attn.models.patch_embedding import bicubic_weights

    x = np.arange(6, dtype="float32") ** 2
    expected = torch.nn.functional.interpolate(
        torch.from_numpy(np.tile(x, (1, 1, 6, 1))), (6, 9), mode="bicubic"
    )[0, 0, 0].numpy()
    np.testing.assert_allclose(bicubic_weights(9, 6) @ x, expected, atol=1e-4)
    for size in 2, 5, 13:
        np.testing.assert_allclose(bicubic_weights(size, 6).sum(1), 1, 1e-6)
    theirs = ops.image.resize(
        np.tile(x, (6, 1))[..., None], (6, 9), interpolation="bicubic"
    )
    if keras.backend.backend() != "torch":
        difference = to_numpy(theirs)[0, :, 0] - expected
        assert np.abs(difference).max() > 0.1
