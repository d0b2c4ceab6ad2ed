"""The speech recognizer: subsampling, model invariants, files."""

import joint_choice
import keras
import numpy as np
import pytest
import sound_files
import speech_data
import speech_lines
import speech_settings
import spoken_digits
from context_convolution import ContextConvolution
from letters import Letters
from log_mel import LogMel
from sound_batches import padded_frames
from speech_model import SpeechTransformer
from subsampling import Subsampling
from transcription import Transcriber

from keras_attn.decoding import BeamSearch, GreedySearch
from keras_attn.training import SequenceCrossentropy

pytestmark = pytest.mark.one_backend("torch")

BANDS = 6


def make_model(**changes):
    arguments = {
        "bands": BANDS,
        "channels": 3,
        "num_layers": 1,
        "num_heads": 2,
        "hidden_dim": 8,
        "intermediate_dim": 16,
        "dropout": 0.0,
        "normalize_first": True,
        **changes,
    }
    return SpeechTransformer(9, **arguments)


@pytest.fixture
def model():
    return make_model()


@pytest.fixture
def frames():
    generator = np.random.default_rng(0)
    sizes = 13, 7, 1
    return [generator.normal(size=(n, BANDS)).astype("float32") for n in sizes]


def numpy(tensor):
    return keras.ops.convert_to_numpy(tensor)


def log_softmax(logits):
    logits = numpy(logits).astype("float64")
    return logits - np.log(np.exp(logits).sum(-1, keepdims=True))


def test_subsampling_matches_the_equation():
    layer = Subsampling(5, channels=2)
    layer.build((None, None, BANDS))
    frames = np.random.default_rng(0).normal(size=(1, 9, BANDS))
    there = np.ones((1, 9), bool)
    x = frames[0, :, :, None]
    for number in range(2):
        kernel, bias = map(numpy, layer._convolutions[number].weights)
        size = -(-x.shape[0] // 2), -(-x.shape[1] // 2)
        x = np.pad(x, [(1, 1), (1, 1), (0, 0)])
        found = np.zeros((*size, 2))
        for t in range(size[0]):
            for b in range(size[1]):
                patch = x[2 * t : 2 * t + 3, 2 * b : 2 * b + 3]
                found[t, b] = np.tensordot(patch, kernel, 3) + bias
        x = np.maximum(found, 0)
    kernel, bias = map(numpy, layer._projection.weights)
    expected = x.reshape(len(x), -1) @ kernel + bias
    assert expected.shape == (3, 5)
    y, found = layer(
        keras.ops.convert_to_tensor(frames, "float32"),
        keras.ops.convert_to_tensor(there),
    )
    np.testing.assert_allclose(numpy(y)[0], expected, atol=1e-5)
    assert numpy(found).tolist() == [[True] * 3]


def test_context_matches_the_equation():
    layer = ContextConvolution(3)
    layer.build((None, None, 4))
    x = np.random.default_rng(0).normal(size=(1, 5, 4)).astype("float32")
    kernel, bias = map(numpy, layer._convolution.weights)
    normed = x[0] - x[0].mean(-1, keepdims=True)
    normed /= np.sqrt(np.square(normed).mean(-1, keepdims=True) + 1e-3)
    normed[4] = 0
    padded = np.pad(normed, [(1, 1), (0, 0)])
    expected = x[0] + [
        np.maximum(np.tensordot(padded[t : t + 3], kernel, 2) + bias, 0)
        for t in range(5)
    ]
    there = keras.ops.convert_to_tensor([[True] * 4 + [False]])
    found = numpy(layer(keras.ops.convert_to_tensor(x), there))
    np.testing.assert_allclose(found[0], expected, atol=1e-5)
    for reach in (0, 4, 1.0):
        with pytest.raises(ValueError, match="`reach` must be an odd number"):
            ContextConvolution(reach)


@pytest.mark.parametrize("length", [13, 14, 40])
def test_padding_does_not_change_outputs(model, frames, length):
    target = np.array([[1, 4, 5]] * 3, "int32")
    together = numpy(model((padded_frames(frames, length), target)))
    for number, sound in enumerate(frames):
        alone = model((padded_frames([sound], len(sound)), target[:1]))
        np.testing.assert_allclose(together[number], numpy(alone)[0], atol=1e-5)
    memory, positions = map(numpy, model.encode(padded_frames(frames, length)))
    size = -(-length // 4)
    assert memory.shape == (3, size, 8) and positions.shape == (3, size)
    assert (positions >= 0).sum(1).tolist() == [4, 2, 1]


def test_decoding_steps_match_the_full_pass(model, frames):
    rows = padded_frames(frames, 16)
    target = np.array([[1, 4, 5, 3]] * 3, "int32")
    whole = numpy(model((rows, target)))
    state = model.start_decoding(keras.ops.convert_to_tensor(rows), 4)
    for step in range(4):
        tokens = keras.ops.convert_to_tensor(target[:, step : step + 1])
        logits, state = model.decode_step(tokens, state)
        np.testing.assert_allclose(
            numpy(logits)[:, 0], whole[:, step], atol=1e-5
        )


def test_search_scores_match_the_model(model, frames):
    rows = padded_frames(frames, 16)
    greedy = model.generate(rows, 5, GreedySearch(), return_weights=True)
    assert greedy.tokens.shape == (3, 1, 5)
    assert greedy.weights.shape == (3, 1, 1, 2, 5, 4)
    for row in range(3):
        length = int(greedy.lengths[row, 0])
        tokens = greedy.tokens[row, 0, :length]
        behind_start = np.concatenate([[1], tokens[:-1]])[None].astype("int32")
        log_p = log_softmax(model((rows[row : row + 1], behind_start)))[0]
        log_p[:, :2] = -np.inf  # padding and start are never generated
        np.testing.assert_array_equal(log_p.argmax(-1), tokens)
        score = log_p[np.arange(length), tokens].sum()
        assert greedy.scores[row, 0] == pytest.approx(score, abs=1e-4)
        vectors = -(-len(frames[row]) // 4)
        weights = greedy.weights[row, 0, 0, :, :length]
        np.testing.assert_allclose(weights.sum(-1), 1, atol=1e-4)
        assert not weights[..., vectors:].any()
    *_, last = model.stream(rows, 5)
    np.testing.assert_array_equal(last.tokens, greedy.tokens)


def test_every_weight_is_used(model, frames):
    names = [variable.path for variable in model.trainable_variables]
    assert sum("embedding" in name for name in names) == 1
    assert sum("subsampling" in name for name in names) == 6
    assert sum("context" in name for name in names) == 4
    assert sum("ctc_head" in name for name in names) == 2


def test_ctc_loss_is_added_in_training_only(model, frames):
    inputs = padded_frames(frames, 16), np.array([[1, 4, 5, 0]] * 3, "int32")
    model(inputs)
    assert not model.losses
    model(inputs, training=True)
    memory, positions = model.encode(inputs[0])
    lengths = (numpy(positions) >= 0).sum(1).astype("int32")
    expected = model._ctc_head.loss(memory, lengths, inputs[1][:, 1:])
    np.testing.assert_allclose(
        numpy(model.losses[0]), 0.3 * numpy(expected), rtol=1e-5
    )
    spelled = model.spell(inputs[0])
    assert spelled == model._ctc_head.spell(memory, lengths)
    assert all(1 <= i < 9 for ids in spelled for i in ids)


TEXTS = np.array(
    [
        [[4, 5, 2], [4, 2, 0], [2, 0, 0]],
        [[6, 2, 0], [5, 5, 2], [3, 4, 5]],
        [[2, 0, 0], [8, 2, 0], [7, 2, 0]],
    ],
    "int32",
)


def test_scores_combine_both_models(model, frames):
    rows = padded_frames(frames, 16)
    decoder, encoder = model.score(rows, TEXTS)
    memory, positions = model.encode(rows)
    lengths = (numpy(positions) >= 0).sum(1).astype("int32")
    for index in range(3):
        texts = TEXTS[:, index]
        given = np.concatenate([np.ones((3, 1), "int32"), texts[:, :-1]], 1)
        log_p = log_softmax(model((rows, np.where(given == 2, 0, given))))
        expected = np.take_along_axis(log_p, texts[..., None], -1)[..., 0]
        np.testing.assert_allclose(
            decoder[:, index], (expected * (texts != 0)).sum(1), atol=1e-4
        )
        characters = np.where(texts == 2, 0, texts)
        expected = model._ctc_head.log_probability(memory, lengths, characters)
        np.testing.assert_allclose(
            encoder[:, index], numpy(expected), rtol=1e-4, atol=1e-4
        )
    # The third sound has one vector, too few for two characters.
    assert np.isfinite(encoder).tolist()[2] == [True, True, True]
    assert np.isinf(encoder[1, 1:]).tolist() == [True, True]


def test_rescoring_selects_the_best_hypothesis(model, frames):
    rows = padded_frames(frames, 16)
    proposed = joint_choice.propose(model, rows, 5)
    tokens, decoder, encoder = proposed
    assert tokens.shape == (3, 5, 5) and decoder.shape == (3, 5)
    beam = model.generate(
        rows, 5, BeamSearch(4, 4, length_penalty=0, suppress_tokens=[3])
    )
    for row, spelled in enumerate(model.spell(rows)):
        np.testing.assert_array_equal(tokens[row, :4], beam.tokens[row])
        there = np.isfinite(beam.scores[row])
        np.testing.assert_allclose(
            decoder[row, :4][there], beam.scores[row][there], atol=1e-4
        )
        assert not np.isfinite(decoder[row, :4][~there]).any()
        spelled = [i for i in spelled if i > 3][:4]
        assert tokens[row, 4].tolist()[: len(spelled) + 1] == [*spelled, 2]
    both = decoder + encoder
    for row, best in enumerate(both.argmax(1)):
        np.testing.assert_array_equal(proposed.choose()[row], tokens[row, best])
    np.testing.assert_array_equal(proposed.choose("encoder"), tokens[:, 4])
    np.testing.assert_array_equal(proposed.choose("decoder"), tokens[:, 0])
    with pytest.raises(ValueError, match="`by` must be one of both"):
        proposed.choose("neither")


def test_fit_decreases_both_losses(frames):
    keras.utils.set_random_seed(0)
    model = make_model()
    inputs = padded_frames(frames, 16), np.array([[1, 4, 0]] * 3, "int32")
    labels = np.array([[4, 2, 0]] * 3, "int32")
    ids = inputs[1][:, 1:]
    lengths = np.array([4, 2, 1], "int32")

    def own():
        memory, _ = model.encode(inputs[0])
        return numpy(model._ctc_head.loss(memory, lengths, ids))

    before = own()
    model.compile(keras.optimizers.Adam(0.01), SequenceCrossentropy())
    losses = model.fit(inputs, labels, epochs=20, verbose=0).history
    assert losses["loss"][-1] < losses["loss"][0] / 2
    assert own() < before / 2


def test_model_save_and_load(model, frames, tmp_path):
    inputs = padded_frames(frames, 16), np.array([[1, 4]] * 3, "int32")
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    assert loaded.get_config() == model.get_config()
    np.testing.assert_allclose(
        numpy(loaded(inputs)), numpy(model(inputs)), atol=1e-6
    )


@pytest.mark.parametrize(
    "name, call",
    [
        ("bands", lambda m: make_model(bands=0)),
        ("channels", lambda m: make_model(channels=1.5)),
        ("ctc", lambda m: make_model(ctc=0)),
        ("frames", lambda m: m.spell(np.zeros((1, 4, BANDS + 1)))),
        ("inputs", lambda m: m(np.ones((1, 4, BANDS + 1), "float32"))),
        ("frames", lambda m: m((np.ones((1, 4, 3), "float32"), [[1]]))),
        ("frames", lambda m: m((np.ones((1, 4, BANDS + 1), int), [[1]]))),
        ("frames", lambda m: m.generate([[1, 2, 3]])),
        ("frames", lambda m: m.generate(np.zeros((1, 4, BANDS + 1)))),
        (
            "target_ids",
            lambda m: m((np.ones((1, 4, BANDS + 1), "float32"), [[9]])),
        ),
        (
            "frames",
            lambda m: m((np.ones((2, 4, BANDS + 1), "float32"), [[1]])),
        ),
    ],
)
def test_invalid_inputs_raise(model, name, call):
    with pytest.raises(ValueError, match=f"`{name}`.*Received"):
        call(model)


@pytest.fixture
def transcriber():
    log_mel = LogMel(bins=BANDS, step=100)
    model = make_model()
    return Transcriber(model, log_mel, Letters("ABCDEF"), (16, 32), 4)


def test_recognizer_save_and_load(transcriber, tmp_path, capsys, monkeypatch):
    generator = np.random.default_rng(0)
    sounds = [generator.uniform(-1, 1, n) for n in (700, 900)]
    for number, sound in enumerate(sounds):
        sound_files.write_wav(tmp_path / f"{number}.wav", sound)
    sounds = list(sound_files.read_sounds(tmp_path).values())
    ways = transcriber.ways(sounds, joint_choice.WAYS)
    assert set(ways) == set(joint_choice.WAYS)
    texts = ways["both"]
    transcriber.save(tmp_path / "model")
    speech_lines.run(tmp_path / "model", tmp_path)
    lines = capsys.readouterr().out.splitlines()
    assert lines == [f"{n}\t{text}" for n, text in enumerate(texts)]
    names = tmp_path / "names.txt"
    names.write_text(f"{tmp_path / '1.wav'}\n\nnone.wav\n", "utf-8")
    with names.open() as keyboard:
        monkeypatch.setattr("sys.stdin", keyboard)
        speech_lines.run(tmp_path / "model")
    printed = capsys.readouterr()
    assert printed.out.splitlines() == [texts[1]]
    assert "There is no file none.wav" in printed.err
    with pytest.raises(ValueError, match="MODEL must be a folder"):
        Transcriber.load(tmp_path)


def test_character_times(transcriber):
    generator = np.random.default_rng(0)
    sounds = [generator.uniform(-1, 1, n) for n in (700, 2900)]
    frames = transcriber.log_mel(sounds)
    for (text, weights), sound, given in zip(
        transcriber.heard(frames), sounds, frames, strict=True
    ):
        assert text == transcriber([sound])[0]
        vectors = -(-len(given) // 4)
        assert weights.shape[:2] == (1, 2) and weights.shape[3] == vectors
        assert weights.shape[2] in (len(text), len(text) + 1)
        np.testing.assert_allclose(weights.sum(-1), 1, atol=1e-4)
    assert transcriber.seconds(2) == pytest.approx(2 * 4 * 100 / 8000)


def test_folds():
    log_mel = LogMel(bins=BANDS, step=100)
    run = speech_settings.read_settings({"QUICK": "1", "SOUNDS": "12"})
    fold = speech_data.morse_fold(run, log_mel)
    examples = fold.draw(0)
    assert len(examples) == 12 and len(fold.tests) == run.tests
    assert {text for _, text in examples}.isdisjoint(
        sound.text for sound in fold.tests
    )
    assert max(len(frames) for frames, _ in examples) <= fold.lengths[-1]
    # The first epoch has short sounds only, later ones have all.
    first, later = (
        {len(frames) for frames, _ in fold.draw(epoch)}
        for epoch in (0, run.ramp)
    )
    assert max(first) < max(later)
    generator = np.random.default_rng(0)
    spoken = [
        spoken_digits.whole(generator.uniform(-1, 1, 900), str(digit), speaker)
        for speaker in ("ann", "bob", "cleo")
        for digit in range(10)
    ]
    folds = speech_data.digit_folds(run, spoken, log_mel)
    assert [fold.name for fold in folds] == ["ann", "bob", "cleo"]
    for fold in folds:
        assert {sound.speaker for sound in fold.tests} == {fold.name}
        first, second = fold.draw(0), fold.draw(1)
        assert len(first) == len(second) == 12
        assert [text for _, text in first] != [text for _, text in second]
    (fold,) = speech_data.digit_folds(
        run._replace(speaker="bob"), spoken, log_mel
    )
    assert fold.name == "bob"
    with pytest.raises(ValueError, match="SPEAKER must be one of ann, bob"):
        speech_data.digit_folds(run._replace(speaker="dan"), spoken, log_mel)
    with pytest.raises(ValueError, match="at least two speakers"):
        speech_data.digit_folds(run, spoken[:10], log_mel)
