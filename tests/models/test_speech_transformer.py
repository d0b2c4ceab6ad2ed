"""SpeechTransformer: PyTorch and brute-force references, padding, training."""

import itertools

import keras
import numpy as np
import pytest
from keras import ops

from keras_attn.decoding import BeamSearch
from keras_attn.explain import doctor
from keras_attn.layers import T5Position
from keras_attn.models import SpeechTransformer
from keras_attn.training import SequenceCrossentropy
from tests.helpers import torch_twin
from tests.helpers.arrays import to_numpy
from tests.helpers.cases import once
from tests.helpers.contract import randomize
from tests.helpers.reference import sinusoid
from tests.helpers.torch_transformer import TorchTransformer
from tests.helpers.weight_gradients import layer_gradients

torch = pytest.importorskip("torch")

V, BINS = 6, 5
SIZES = {
    "num_mel_bins": BINS,
    "filters": 2,
    "num_layers": 1,
    "num_heads": 2,
    "hidden_dim": 8,
    "intermediate_dim": 12,
    "num_decoder_layers": 1,
    "dropout": 0.0,
}
RNG = np.random.default_rng(0)
FRAMES = RNG.normal(size=(2, 18, BINS)).astype("float32")
FRAMES[0, 4:6] = 0  # no padding
FRAMES[1, 9:] = 0  # padding
SIZE = 18, 9  # frames
TARGET = np.array([[1, 3, 3], [1, 5, 0]], "int32")
LABELS = np.array([[3, 3, 2], [5, 2, 0]], "int32")


def tiny_model(random=True, **kwargs):
    model = SpeechTransformer(V, **(SIZES | kwargs))
    return randomize(model, scale=0.4) if random else model


def rows_without_padding(frames=FRAMES):
    return [frames[i : i + 1, : SIZE[i]] for i in range(len(frames))]


class TorchSpeechTransformer(TorchTransformer):
    """PyTorch reference of `SpeechTransformer`, for one row without padding."""

    def __init__(self, model):
        super().__init__(model)
        self.front = {
            name.removeprefix("front_end/"): self._leaf(name)
            for name in self.arrays
            if name.startswith(("front_end/", "ctc_output/"))
        }

    def encode(self, frames):
        """Returns the memory, float64 (1, S, D)."""
        front, f = self.front, torch.nn.functional
        x = torch_twin.tensor(frames.astype("float64"))[:, None]
        for name in "strided_0", "strided_1":
            kernel = front[f"{name}/kernel"].permute(3, 2, 0, 1)
            bias = front[f"{name}/bias"]
            x = f.relu(f.conv2d(x, kernel, bias, stride=2, padding=1))
        x = x.permute(0, 2, 3, 1).flatten(2)
        x = x @ front["projection/kernel"] + front["projection/bias"]
        scales = front["context_norm/gamma"], front["context_norm/beta"]
        y = f.layer_norm(x, x.shape[-1:], *scales, self.model.epsilon)
        kernel = front["context/kernel"].permute(2, 1, 0)
        bias = front["context/bias"]
        y = f.conv1d(y.transpose(1, 2), kernel, bias, padding=7)
        x = x + f.relu(y).transpose(1, 2)
        places = sinusoid(np.arange(x.shape[1])[None], x.shape[2])
        return self.transformer.encoder(x + torch_twin.tensor(places))

    def decode(self, target, memory):
        """Returns logits, float64 (1, T, V)."""
        mask = np.ones(target.shape, bool)
        hidden = self.transformer.decoder(
            self._embed("target", self.target_matrix, target, mask),
            memory,
            tgt_mask=self._added("decoder", mask, causal=True),
        )
        return hidden @ self.output_matrix.T

    def ctc_loss(self, memory, text):
        """Returns -log P of one text by CTC."""
        front = self.front
        logits = memory @ front["ctc_output/kernel"] + front["ctc_output/bias"]
        return torch.nn.functional.ctc_loss(
            logits.log_softmax(-1).transpose(0, 1),
            torch_twin.tensor(text[None].astype("int64")),
            (memory.shape[1],),
            (len(text),),
            reduction="sum",
        )


@pytest.mark.every_backend
@pytest.mark.parametrize("normalize_first", [True, *once([False])])
def test_equals_torch(normalize_first):
    model = tiny_model(normalize_first=normalize_first)
    twin = TorchSpeechTransformer(model)
    found = to_numpy(model((FRAMES, TARGET)))
    memory, positions = map(to_numpy, model.encode(FRAMES))
    assert positions.tolist() == [[0, 1, 2, 3, 4], [0, 1, 2, -1, -1]]
    for row, frames in enumerate(rows_without_padding()):
        expected = twin.encode(frames)
        length = expected.shape[1]
        target = TARGET[row : row + 1, : 3 - row]
        logits = twin.decode(target, expected)[0].detach().numpy()
        expected = expected[0].detach().numpy()
        np.testing.assert_allclose(memory[row, :length], expected, atol=1e-5)
        np.testing.assert_allclose(
            found[row, : 3 - row], logits, rtol=1e-5, atol=1e-5
        )


@pytest.mark.every_backend
def test_ctc_loss_and_its_gradients_equal_torch():
    model = tiny_model()
    twin = TorchSpeechTransformer(model)
    texts = [np.array([3, 3]), np.array([5])]
    losses = [
        twin.ctc_loss(twin.encode(frames), text)
        for frames, text in zip(rows_without_padding(), texts, strict=True)
    ]
    loss = 0.3 * sum(losses) / 3  # per token
    loss.backward()
    model((FRAMES, TARGET), training=True)
    (added,) = model.losses
    np.testing.assert_allclose(float(to_numpy(added)), loss.item(), rtol=1e-5)

    def weighted_loss():
        memory, positions = model.encode(FRAMES)
        scores = model.ctc_score(memory, positions, LABELS)
        return -0.3 * ops.sum(scores) / 3

    _, found = layer_gradients(model, weighted_loss)
    for name, leaf in twin.front.items():
        path = name if name.startswith("ctc") else f"front_end/{name}"
        np.testing.assert_allclose(
            found[path], leaf.grad.numpy(), atol=1e-5, err_msg=name
        )


def read_path(path):
    """Returns the text of a path: merges repeated tokens, removes blanks."""
    return tuple(token for token, _ in itertools.groupby(path) if token)


def test_ctc_score_is_a_sum_over_paths():
    model = tiny_model()
    memory, positions = model.encode(FRAMES)
    logits, lengths = map(to_numpy, model.ctc_logits(memory, positions))
    assert lengths.tolist() == [5, 3]
    p = np.exp(logits) / np.exp(logits).sum(-1, keepdims=True)
    for text in [], [3], [3, 3], [4, 5, 3], [4, 4, 4]:
        tokens = np.zeros((2, 5), "int32")
        tokens[:, : len(text) + 1] = [*text, 2]
        found = to_numpy(model.ctc_score(memory, positions, tokens))
        for row, length in enumerate(lengths):
            expected = sum(
                np.prod(p[row, range(length), path])
                for path in itertools.product(range(V), repeat=length)
                if read_path(path) == tuple(text)
            )
            with np.errstate(divide="ignore"):
                expected = np.log(expected)
            np.testing.assert_allclose(found[row], expected, rtol=1e-4)


def test_score_is_the_sum_of_decoder_and_ctc():
    model = tiny_model()
    memory, positions = model.encode(FRAMES)
    logits = to_numpy(model((FRAMES, TARGET))).astype("float64")
    log_probs = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
    log_probs = np.take_along_axis(log_probs, LABELS[..., None], -1)[..., 0]
    expected = (log_probs * (LABELS != 0)).sum(1)
    expected += to_numpy(model.ctc_score(memory, positions, LABELS))
    found = to_numpy(model.score(memory, positions, LABELS))
    np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_transcribe_takes_the_text_with_the_highest_score():
    model = tiny_model()
    found = model.transcribe(FRAMES, 4, num_beams=2)
    assert found.tokens.shape == (2, 1, 4)
    memory, positions = model.encode(FRAMES)
    score = to_numpy(model.score(memory, positions, found.tokens[:, 0]))
    np.testing.assert_allclose(found.scores[:, 0], score, rtol=1e-5)
    logits = to_numpy(model.ctc_logits(memory, positions)[0])
    for row, (length, path) in enumerate(
        zip((5, 3), logits.argmax(-1), strict=True)
    ):
        text = [t for t in read_path(path[:length]) if t > 2][:3]
        tokens = np.zeros((2, 4), "int32")
        tokens[:, : len(text) + 1] = [*text, 2]
        spelled = to_numpy(model.score(memory, positions, tokens))[row]
        assert found.scores[row, 0] >= spelled - 1e-4
        chosen = found.tokens[row, 0]
        assert found.lengths[row, 0] == np.count_nonzero(chosen)
    beam = model.generate(FRAMES, 4, BeamSearch(2, 2, length_penalty=0))
    for texts in beam.tokens.transpose(1, 0, 2):
        other = to_numpy(model.score(memory, positions, texts))
        assert (found.scores[:, 0] >= other - 1e-4).all()


def test_padding_does_not_change_the_results():
    model = tiny_model()
    longer = np.pad(FRAMES, [(0, 0), (0, 13), (0, 0)])
    logits = to_numpy(model((longer, TARGET)))
    transcribed = model.transcribe(longer, 4)
    for row, frames in enumerate(rows_without_padding()):
        target = TARGET[row : row + 1]
        alone = to_numpy(model((frames, target)))[0]
        np.testing.assert_allclose(logits[row], alone, atol=1e-5)
        found = model.transcribe(frames, 4)
        np.testing.assert_array_equal(found.tokens[0], transcribed.tokens[row])
        np.testing.assert_allclose(
            found.scores[0], transcribed.scores[row], rtol=1e-4
        )


@pytest.mark.one_backend
@pytest.mark.parametrize("training", [False, True])
def test_results_without_frames_or_without_vectors_are_finite(training):
    """A row of zeros, a text too long for its frames, and one without text."""
    model = tiny_model()
    frames = np.concatenate([FRAMES[:1, :5] * 0, FRAMES[:1, :5]])
    target = np.array([[1, 3, 4, 5], [1, 0, 0, 0]], "int32")
    labels = np.array([[3, 4, 5, 2], [2, 0, 0, 0]], "int32")
    assert np.isfinite(to_numpy(model((frames, target)))).all()
    assert np.isfinite(model.transcribe(frames, 4).scores).all()
    if training:
        model.compile("adam", SequenceCrossentropy())
        model.fit((frames, target), labels, verbose=0)
        assert all(np.isfinite(to_numpy(w)).all() for w in model.weights)


@pytest.mark.every_backend
def test_decode_steps_equal_full_pass():
    position = T5Position(2, 8, 6, name="relative")
    model = tiny_model(encoder_attention_position=position)
    state = model.start_decoding(FRAMES, 3)
    steps = []
    for index in range(3):
        token = ops.convert_to_tensor(TARGET[:, index : index + 1])
        logits, state = model.decode_step(token, state)
        steps.append(to_numpy(logits)[:, 0])
    expected = to_numpy(model((FRAMES, TARGET)))
    real = TARGET != 0
    found = np.stack(steps, 1)
    np.testing.assert_allclose(found[real], expected[real], atol=1e-5)


def test_generates_with_attention_weights():
    model = tiny_model()
    found = model.generate(FRAMES, 4, return_weights=True)
    assert found.weights.shape == (2, 1, 1, 2, 4, 5)
    weights = to_numpy(model.align(FRAMES, found.tokens, found.lengths))
    np.testing.assert_allclose(weights, found.weights, atol=1e-5)
    sums = weights[0, 0, 0].sum(-1)[:, : found.lengths[0, 0]]
    np.testing.assert_allclose(sums, 1, atol=1e-5)
    *_, last = model.stream(FRAMES, 4)
    np.testing.assert_array_equal(last.tokens, found.tokens)


@pytest.mark.one_backend("torch")
def test_fit_learns_tones():
    """Eight frames of noise with a tone in one of three bands per token."""
    texts = RNG.integers(3, V, (192, 3))
    frames = RNG.normal(0, 0.3, (192, 3, 8, BINS))
    frames += np.eye(BINS)[texts - 3][:, :, None] * (np.arange(8) < 6)[:, None]
    frames = frames.reshape(192, 24, BINS).astype("float32")
    labels = np.concatenate([texts, np.full((192, 1), 2)], 1).astype("int32")
    target = np.concatenate([np.ones((192, 1)), texts], 1).astype("int32")
    keras.utils.set_random_seed(0)
    sizes = {"filters": 8, "hidden_dim": 32, "intermediate_dim": 64}
    model = tiny_model(random=False, **sizes)
    model.compile(keras.optimizers.Adam(0.005), SequenceCrossentropy())
    model.fit((frames, target), labels, epochs=12, batch_size=16, verbose=0)
    found = model.transcribe(frames[:32], 4).tokens[:, 0]
    assert (found == labels[:32]).mean() > 0.9
    memory, positions = model.encode(frames[:32])
    scores = to_numpy(model.ctc_score(memory, positions, labels[:32]))
    assert scores.mean() > -1


def test_named_sizes():
    options = SIZES | {"num_layers": 2}
    del options["num_heads"], options["hidden_dim"]
    for name, sizes in {"base": (4, 256), "big": (8, 512)}.items():
        model = getattr(SpeechTransformer, name)(V, **options)
        assert (model.num_heads, model.hidden_dim) == sizes
        assert (model.num_layers, model.num_mel_bins) == (2, BINS)


def test_a_learned_position_table_limits_vectors_and_targets():
    options = {"position_embedding": "learned", "max_sequence_length": 5}
    model = tiny_model(**options)
    assert model((FRAMES, TARGET)).shape == (2, 3, V)
    with pytest.raises(ValueError, match="max_sequence_length=5"):
        model((np.tile(FRAMES, (1, 2, 1)), TARGET))
    with pytest.raises(ValueError, match="`target_ids` must not exceed"):
        model((FRAMES, np.tile(TARGET, 2)))


def test_without_ctc_weight_there_is_no_loss():
    model = tiny_model(ctc_weight=0)
    model((FRAMES, TARGET), training=True)
    assert not model.losses


def test_file_round_trip(tmp_path):
    position = T5Position(2, 8, 6, name="relative")
    model = tiny_model(encoder_attention_position=position)
    before = to_numpy(model((FRAMES, TARGET)))
    paths = [variable.path for variable in model.variables]
    assert len(set(paths)) == len(paths)
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    assert isinstance(loaded, SpeechTransformer)
    assert loaded.get_config() == model.get_config()
    np.testing.assert_array_equal(to_numpy(loaded((FRAMES, TARGET))), before)
    found, expected = (m.transcribe(FRAMES, 4) for m in (loaded, model))
    np.testing.assert_array_equal(found.tokens, expected.tokens)


@pytest.mark.parametrize("dtype", ["mixed_float16", *once(["mixed_bfloat16"])])
def test_mixed_precision(dtype):
    model = tiny_model(random=False, dtype=dtype)
    model.compile("adam", SequenceCrossentropy())
    loss = model.fit((FRAMES, TARGET), LABELS, verbose=0).history["loss"]
    assert np.isfinite(loss).all()
    assert all(np.isfinite(to_numpy(w)).all() for w in model.trainable_weights)
    assert np.isfinite(model.transcribe(FRAMES, 3).scores).all()


def test_functional_model():
    model = tiny_model()
    inputs = keras.Input((None, BINS)), keras.Input((None,), dtype=int)
    outer = keras.Model(inputs, model(inputs))
    assert outer.output_shape == (None, None, V)
    np.testing.assert_allclose(
        to_numpy(outer((FRAMES, TARGET))),
        to_numpy(model((FRAMES, TARGET))),
        atol=1e-5,
    )


@pytest.mark.one_backend
def test_doctor_finds_no_leak():
    assert doctor(tiny_model(), (FRAMES, TARGET))


@pytest.mark.parametrize(
    "change, message",
    [
        ({"vocabulary_size": 0}, "`vocabulary_size` must be"),
        ({"num_mel_bins": 0}, "`num_mel_bins` must be"),
        ({"filters": 0}, "`filters` must be"),
        ({"ctc_weight": -0.1}, "`ctc_weight` must be at least 0"),
        ({"end_id": V}, r"`end_id` must lie in \[0, 6\)"),
    ],
)
def test_invalid_arguments_raise(change, message):
    options = {"vocabulary_size": V} | SIZES | change
    with pytest.raises(ValueError, match=message):
        SpeechTransformer(**options)


@pytest.mark.parametrize(
    "inputs, message",
    [
        (FRAMES, "`inputs` must be a pair"),
        (
            (FRAMES[..., 1:], TARGET),
            r"`frames` must have shape \(batch, length",
        ),
        ((FRAMES[:, :0], TARGET), "`frames` must hold at least one row"),
        ((FRAMES, TARGET[:1]), "the same number of rows"),
        ((FRAMES, TARGET + V), r"`target_ids` must lie in \[0, 6\)"),
    ],
)
def test_invalid_inputs_raise(inputs, message):
    with pytest.raises(ValueError, match=message):
        tiny_model()(inputs)


def test_invalid_frames_of_generate_raise():
    with pytest.raises(ValueError, match="`inputs` must have shape"):
        tiny_model().generate(FRAMES[0], 3)
