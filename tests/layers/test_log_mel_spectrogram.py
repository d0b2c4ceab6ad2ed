"""LogMelSpectrogram: a NumPy reference, padding, volume, silence."""

import keras
import numpy as np
import pytest

from keras_attn.layers import LogMelSpectrogram
from tests.helpers.arrays import to_numpy
from tests.helpers.cases import once

pytestmark = pytest.mark.every_backend

RATE, STRIDE, WINDOW, BINS = 8000, 80, 256, 12
RNG = np.random.default_rng(0)
SAMPLES = RNG.normal(size=(3, 1200)).cumsum(axis=1)
LENGTHS = np.array([1200, 799, 80], "int32")


def make(stride=STRIDE, window=WINDOW, **kwargs):
    return LogMelSpectrogram(
        RATE, stride, window, num_mel_bins=BINS, min_freq=100.0, **kwargs
    )


def mel_bands(window):
    """Weights (window // 2 + 1, BINS): triangles on the mel scale."""

    def mel(hertz):
        return 2595 * np.log10(1 + np.asarray(hertz) / 700)

    edges = np.linspace(mel(100), mel(RATE / 2), BINS + 2)
    points = mel(np.fft.rfftfreq(window, 1 / RATE))
    return np.stack(
        [
            np.interp(points, edges[i : i + 3], [0, 1, 0], 0, 0)
            for i in range(BINS)
        ],
        axis=1,
    )


def reference(samples, stride=STRIDE, window=WINDOW):
    """Computes the frames of one recording in float64, one by one."""
    padded = np.pad(samples, (window // 2, window))
    # A periodic Hann window, as in Keras.
    hann = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(window) / window)
    mel = []
    for center in range(0, len(samples) + 1, stride):
        part = padded[center : center + window] * hann
        mel.append(np.abs(np.fft.rfft(part)) ** 2 @ mel_bands(window))
    mel = np.array(mel)
    level = np.log(np.maximum(mel / mel.max(), 1e-6))
    return (level - level.mean()) / level.std()


@pytest.mark.parametrize("stride, window", [(STRIDE, WINDOW), (100, 128)])
def test_equals_numpy(stride, window):
    frames = to_numpy(make(stride, window)(SAMPLES, lengths=LENGTHS))
    assert frames.shape == (3, 1 + 1200 // stride, BINS)
    for row, length in enumerate(LENGTHS):
        count = 1 + length // stride
        expected = reference(SAMPLES[row, :length], stride, window)
        np.testing.assert_allclose(frames[row, :count], expected, atol=2e-3)
        assert not frames[row, count:].any()


def test_without_lengths_all_samples_count():
    found = to_numpy(make()(SAMPLES))
    expected = make()(SAMPLES, lengths=np.full(3, 1200))
    np.testing.assert_array_equal(found, to_numpy(expected))


def test_padding_and_other_recordings_do_not_change_the_frames():
    frames = to_numpy(make()(SAMPLES, lengths=LENGTHS))
    for row, length in enumerate(LENGTHS):
        alone = to_numpy(make()(SAMPLES[row : row + 1, :length]))[0]
        np.testing.assert_allclose(frames[row, : len(alone)], alone, atol=1e-3)


@pytest.mark.parametrize("volume", [1e-4, 1e3])
def test_the_volume_does_not_change_the_frames(volume):
    found, expected = make()(volume * SAMPLES), make()(SAMPLES)
    np.testing.assert_allclose(to_numpy(found), to_numpy(expected), atol=1e-3)


def test_integers_equal_floats():
    samples = np.rint(100 * SAMPLES)
    found, expected = make()(samples.astype("int16")), make()(samples)
    np.testing.assert_array_equal(to_numpy(found), to_numpy(expected))


@pytest.mark.parametrize("length", [0, 1, 500])
def test_frames_of_silence_are_zeros(length):
    lengths = np.array([length, 0])
    frames = to_numpy(make()(np.zeros((2, length)), lengths=lengths))
    assert frames.shape == (2, 1 + length // STRIDE, BINS)
    assert not frames.any()


@pytest.mark.parametrize("dtype", ["mixed_float16", *once(["bfloat16"])])
def test_half_precision_rounds_the_result_only(dtype):
    samples = 1e4 * SAMPLES
    layer = make(dtype=dtype)
    found = layer(samples, lengths=LENGTHS)
    assert keras.backend.standardize_dtype(found.dtype) in dtype
    expected = to_numpy(make()(samples, lengths=LENGTHS))
    found = to_numpy(keras.ops.cast(found, "float32"))
    np.testing.assert_allclose(found, expected, atol=0.02)


def test_functional_model_and_file(tmp_path):
    samples = keras.Input((None,))
    lengths = keras.Input((), dtype="int32")
    layer = make(name="log_mel")
    model = keras.Model([samples, lengths], layer(samples, lengths=lengths))
    assert model.output_shape == (None, None, BINS)
    assert layer.compute_output_shape((2, 1200)) == (2, 16, BINS)
    inputs = [SAMPLES.astype("float32"), LENGTHS]
    expected = to_numpy(make()(*inputs))
    np.testing.assert_allclose(to_numpy(model(inputs)), expected, atol=1e-5)
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    assert loaded.get_layer("log_mel").get_config() == layer.get_config()
    np.testing.assert_allclose(to_numpy(loaded(inputs)), expected, atol=1e-5)


@pytest.mark.parametrize(
    "change, message",
    [
        ({"sampling_rate": 0}, "`sampling_rate` must be"),
        ({"sequence_stride": 1.5}, "`sequence_stride` must be"),
        ({"fft_length": 0}, "`fft_length` must be"),
        ({"num_mel_bins": 0}, "`num_mel_bins` must be"),
        ({"min_freq": -1}, "`min_freq` must be at least 0 and lower"),
        ({"min_freq": 8000}, "`min_freq` must be .* half of sampling_rate="),
    ],
)
def test_invalid_arguments_raise(change, message):
    with pytest.raises(ValueError, match=message):
        LogMelSpectrogram(**change)


@pytest.mark.parametrize(
    "samples, lengths, message",
    [
        (SAMPLES[0], None, "`samples` must have rank 2"),
        (1j * SAMPLES, None, "`samples` must hold real numbers"),
        (SAMPLES, LENGTHS[:, None], "`lengths` must have rank 1"),
        (SAMPLES, LENGTHS[:2], "`lengths` must have 3 rows"),
        (SAMPLES, LENGTHS / 2, "`lengths` must hold integers"),
        (SAMPLES, LENGTHS + 1, r"`lengths` must lie in \[0, 1200\]"),
        (SAMPLES, LENGTHS - 81, "`lengths` must lie in"),
    ],
)
def test_invalid_inputs_raise(samples, lengths, message):
    with pytest.raises(ValueError, match=message):
        make()(samples, lengths=lengths)
