"""ImageCaptioner: encoder and decoder against references, training, files."""

import keras
import numpy as np
import pytest
from keras import layers, ops

from keras_attn.explain import doctor
from keras_attn.layers import ScoredAttention
from keras_attn.models import ImageCaptioner
from keras_attn.training import SequenceCrossentropy
from tests.helpers import torch_twin
from tests.helpers.arrays import to_numpy
from tests.helpers.cases import once
from tests.helpers.contract import randomize
from tests.helpers.tiny_models import LABELS, TARGET
from tests.models.torch_recurrent import TorchRecurrent

torch = pytest.importorskip("torch")

V, D, SHAPE = 13, 8, (7, 12, 3)
RNG = np.random.default_rng(0)
IMAGES = RNG.integers(0, 256, (2, *SHAPE)).astype("uint8")
FORMS = {
    "additive": {},
    "no attention": {"attention": None, "num_layers": 2},
    "feeding a GRU": {
        "cell": "gru",
        "input_feeding": True,
        "attention": "general",
        "num_layers": 2,
    },
}
every_form = pytest.mark.parametrize("form", FORMS)


def tiny_captioner(random=True, **kwargs):
    options = {"hidden_dim": D, "filters": 2, "dropout": 0.0} | kwargs
    model = ImageCaptioner(V, SHAPE, **options)
    return randomize(model, scale=0.4) if random else model


def weights_below(model, name):
    """Weights whose paths contain a name, in the order of creation."""
    found = [w for w in model.weights if f"{name}/" in f"{w.path}/"]
    assert found, name
    return [to_numpy(weight) for weight in found]


class TorchCaptioner(TorchRecurrent):
    """PyTorch reference of the decoder."""

    def _encode(self, image):
        (memory, _), states = self.model.encode(image[None])
        memory, states = keras.tree.map_structure(
            lambda x: torch_twin.tensor(to_numpy(x)[0]), (memory, states)
        )
        return memory, list(states)


@pytest.mark.every_backend
@every_form
def test_decoder_equals_torch(form):
    model = tiny_captioner(**FORMS[form])
    twin = TorchCaptioner(model)
    found = to_numpy(model((IMAGES, TARGET)))
    assert found.shape == (*TARGET.shape, V)
    for row, image, target in zip(found, IMAGES, TARGET, strict=True):
        logits = twin(image, list(target))[0].detach().numpy()
        np.testing.assert_allclose(row, logits, atol=1e-5)


@pytest.mark.parametrize("cell", ["lstm", *once(["gru"])])
def test_encoder_is_a_composition_of_keras_layers(cell):
    model = tiny_captioner(cell=cell, num_layers=2)
    same = {"padding": "same"}
    image = keras.Input(SHAPE)
    x = layers.Rescaling(1 / 127.5, offset=-1)(image)
    for filters, strides in ((2, 1), (4, 2), (8, 2), (8, 1)):
        x = layers.Conv2D(filters, 3, strides, **same)(x)
        x = layers.ReLU()(layers.LayerNormalization()(x))
    local = x
    for rate in (1, 2, 4):
        x = layers.Conv2D(8, 3, dilation_rate=rate, **same)(x)
        x = layers.ReLU()(layers.LayerNormalization()(x))
    x = layers.Dense(D)(layers.Concatenate()([local, x]))
    composed = keras.Model(image, layers.Reshape((6, D))(x))
    norms = "image_encoder/norm", "image_encoder/position_embedding"
    (gamma, beta), (positions,) = (weights_below(model, n) for n in norms)
    weights = weights_below(model, "image_encoder")
    # The position embedding is the first one, the last normalization the end.
    composed.set_weights(weights[1:-2])
    x = to_numpy(composed(IMAGES.astype("float32"))) + positions
    x = x - x.mean(-1, keepdims=True)
    x = x / np.sqrt(x.var(-1, keepdims=True) + 1e-3) * gamma + beta
    (memory, places), states = model.encode(IMAGES)
    np.testing.assert_allclose(to_numpy(memory), x, atol=1e-5)
    assert to_numpy(places).tolist() == [list(range(6))] * 2
    assert model.grid_size == (2, 3)
    states = [state for layer in states for state in layer]
    assert len(states) == (4 if cell == "lstm" else 2)
    for number, state in enumerate(states):
        kernel, bias = weights_below(model, f"initial_state_{number}")
        expected = np.tanh(x.mean(1) @ kernel + bias)
        np.testing.assert_allclose(to_numpy(state), expected, atol=1e-5)


@pytest.mark.every_backend
@every_form
def test_decode_steps_equal_full_pass(form):
    model = tiny_captioner(**FORMS[form])
    state = model.start_decoding(IMAGES, 3)
    steps = []
    for position in range(3):
        token = ops.convert_to_tensor(TARGET[:, position : position + 1])
        logits, state = model.decode_step(token, state)
        steps.append(to_numpy(logits)[:, 0])
    np.testing.assert_allclose(
        np.stack(steps, 1), to_numpy(model((IMAGES, TARGET))), atol=1e-5
    )


@pytest.mark.parametrize("strategy", ["greedy", *once(["beam"])])
def test_generates_with_attention_weights(strategy):
    model = tiny_captioner()
    found = model.generate(IMAGES, 4, strategy, return_weights=True)
    assert found.weights.shape[-1] == 6
    for row, tokens in enumerate(found.tokens[:, 0]):
        length = found.lengths[row, 0]
        sums = found.weights[row, 0, 0, 0].sum(-1)
        np.testing.assert_allclose(sums[:length], 1, atol=1e-5)
        assert not sums[length:].any()
        alone = model.generate(IMAGES[row : row + 1], 4, strategy)
        size = alone.tokens.shape[2]
        np.testing.assert_array_equal(alone.tokens[0, 0], tokens[:size])
    floats = model.generate(IMAGES.astype("float32"), 4, strategy)
    np.testing.assert_array_equal(floats.tokens, found.tokens)
    *_, last = model.stream(IMAGES, 4, strategy)
    np.testing.assert_array_equal(last.tokens, found.tokens)


def test_hard_attention_reads_one_cell_per_word():
    attention = ScoredAttention("additive", hard="gumbel", seed=1)
    model = tiny_captioner(attention=attention)
    found = model.generate(IMAGES, 4, return_weights=True)
    weights = found.weights[0, 0, 0, 0, : found.lengths[0, 0]]
    assert set(np.unique(weights)) == {0, 1}
    np.testing.assert_array_equal(weights.sum(-1), 1)


@pytest.mark.one_backend("torch")
@pytest.mark.parametrize("hard", [None, *once(["gumbel"])])
def test_fit_learns_colors(hard):
    """Each caption names the colors of the left and the right half."""
    colors = RNG.integers(0, 3, (96, 2))
    images = np.eye(3)[colors].repeat(4, 1)[:, None].repeat(4, 1) * 255
    tokens = np.concatenate([colors + 3, np.full((96, 1), 2)], 1)
    target = np.concatenate([np.ones((96, 1)), tokens[:, :-1]], 1)
    target = target.astype("int32")
    keras.utils.set_random_seed(0)
    attention = ScoredAttention("additive", hard=hard, seed=1)
    model = ImageCaptioner(
        6, (4, 8, 3), hidden_dim=16, filters=4, attention=attention, dropout=0.0
    )
    model.compile(keras.optimizers.Adam(0.01), SequenceCrossentropy())
    model.fit((images, target), tokens, epochs=12, batch_size=16, verbose=0)
    found = model.generate(images[:32], 3).tokens[:, 0]
    assert (found == tokens[:32]).mean() > 0.9


@every_form
def test_file_round_trip(form, tmp_path):
    model = tiny_captioner(**FORMS[form])
    before = to_numpy(model((IMAGES, TARGET)))
    paths = [variable.path for variable in model.variables]
    assert len(set(paths)) == len(paths)
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    assert isinstance(loaded, ImageCaptioner)
    assert loaded.get_config() == model.get_config()
    assert loaded.image_shape == SHAPE
    np.testing.assert_array_equal(to_numpy(loaded((IMAGES, TARGET))), before)


def test_custom_attention_layer_is_saved(tmp_path):
    attention = ScoredAttention("location", max_sequence_length=6)
    model = tiny_captioner(attention=attention)
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    np.testing.assert_array_equal(
        to_numpy(loaded((IMAGES, TARGET))), to_numpy(model((IMAGES, TARGET)))
    )


@pytest.mark.parametrize("dtype", ["mixed_float16", *once(["mixed_bfloat16"])])
def test_mixed_precision(dtype):
    model = tiny_captioner(random=False, dtype=dtype)
    model.compile("adam", SequenceCrossentropy())
    loss = model.fit((IMAGES, TARGET), LABELS, verbose=0).history["loss"]
    assert np.isfinite(loss).all()
    assert all(np.isfinite(to_numpy(w)).all() for w in model.trainable_weights)
    found = model.generate(IMAGES, 3, return_weights=True)
    sums = found.weights[0, 0, 0, 0, 0].sum(-1)
    np.testing.assert_allclose(sums, 1, atol=1e-2)


def test_functional_model():
    model = tiny_captioner()
    inputs = keras.Input(SHAPE, dtype="uint8"), keras.Input((None,), dtype=int)
    outer = keras.Model(inputs, model(inputs))
    assert outer.output_shape == (None, None, V)
    np.testing.assert_allclose(
        to_numpy(outer((IMAGES, TARGET))),
        to_numpy(model((IMAGES, TARGET))),
        atol=1e-5,
    )


@pytest.mark.one_backend
def test_doctor_finds_no_leak():
    assert doctor(tiny_captioner(), (IMAGES, TARGET))


@pytest.mark.parametrize(
    "change, message",
    [
        ({"vocabulary_size": 0}, "`vocabulary_size` must be"),
        ({"image_shape": (4, 4)}, "`image_shape` must be three integers"),
        ({"image_shape": (4, 0, 3)}, r"`image_shape\[1\]` must be"),
        ({"filters": 0}, "`filters` must be"),
        ({"cell": "rnn"}, "`cell` must be one of"),
        ({"attention": "location"}, "`attention` must be a `ScoredAttention`"),
        ({"end_id": V}, r"`end_id` must lie in \[0, 13\)"),
    ],
)
def test_invalid_arguments_raise(change, message):
    options = {"vocabulary_size": V, "image_shape": SHAPE} | change
    with pytest.raises(ValueError, match=message):
        ImageCaptioner(**options)


@pytest.mark.parametrize(
    "inputs, message",
    [
        (IMAGES, "`inputs` must be a pair"),
        ((IMAGES[:, 1:], TARGET), r"`images` must have shape \(batch, 7, 12"),
        ((IMAGES[..., :1], TARGET), r"`images` must have shape \(batch, 7, 12"),
        ((IMAGES, TARGET[:1]), "the same number of rows"),
        ((IMAGES, TARGET + V), r"`target_ids` must lie in \[0, 13\)"),
    ],
)
def test_invalid_inputs_raise(inputs, message):
    model = tiny_captioner()
    with pytest.raises(ValueError, match=message):
        model(inputs)


def test_invalid_images_of_generate_raise():
    with pytest.raises(ValueError, match="`inputs` must have shape"):
        tiny_captioner().generate(IMAGES[0], 3)
