"""Synthetic speech of digits."""

import collections

import numpy as np
import pytest

from keras_attn.datasets import make_digit_audio
from keras_attn.datasets.digit_phones import DIGITS, PHONES
from keras_attn.datasets.formant_synthesizer import Voice, synthesize
from keras_attn.datasets.stable_random import StableRandom
from tests.helpers.digest import digest

pytestmark = pytest.mark.one_backend

# Averages of men (Peterson and Barney 1952, table II).
FORMANTS = {
    "IY": (270, 2290, 3010),
    "IH": (390, 1990, 2550),
    "EH": (530, 1840, 2480),
    "AA": (730, 1090, 2440),
    "AO": (570, 840, 2410),
    "UH": (440, 1020, 2240),
    "UW": (300, 870, 2240),
    "AH": (640, 1190, 2390),
}


def measure_formants(samples, order=10):
    """Formants in Hz, by linear prediction."""
    samples = np.diff(samples) + 0.05 * samples[:-1]
    samples *= np.hamming(len(samples))
    lags = np.correlate(samples, samples, "full")[len(samples) - 1 :]
    numbers = np.arange(order)
    matrix = lags[np.abs(numbers[:, None] - numbers)]
    matrix += 1e-9 * lags[0] * np.eye(order)
    weights = np.linalg.solve(matrix, lags[1 : order + 1])
    roots = np.roots([1, *-weights])
    roots = roots[(roots.imag > 0) & (np.abs(roots) > 0.8)]
    return np.sort(np.angle(roots) * 8000 / (2 * np.pi))


@pytest.mark.parametrize("scale", [1.0, 1.15])
@pytest.mark.parametrize("vowel", FORMANTS)
def test_formants_of_vowels(vowel, scale):
    voice = Voice((scale,) * 4, 100.0, 1.0, 120.0, 0.05)
    sound = synthesize(
        [PHONES[vowel]], [0, 0.25], [(0, 100.0)], voice, StableRandom(1)
    )
    found = measure_formants(sound[800:1600])[:3]
    expected = scale * np.array(FORMANTS[vowel])
    # Linear prediction favors the harmonics, which are 100 Hz apart.
    np.testing.assert_allclose(found, expected, rtol=0.05, atol=20)


def test_pitch():
    voice = Voice((1.0,) * 4, 150.0, 1.0, 120.0, 0.0)
    pitch = [(0, 200.0), (0.5, 100.0)]
    sound = synthesize([PHONES["AH"]], [0, 0.5], pitch, voice, StableRandom(0))
    for start in (400, 2000, 3200):
        part = sound[start : start + 400]
        lags = np.correlate(part, part, "full")[399:]
        period = 30 + lags[30:100].argmax()
        middle = 200 - 200 * (start + 200) / 8000
        assert 8000 / period == pytest.approx(middle, rel=0.05)


def spectra(recordings, bands=16, parts=8):
    """Log spectra, averaged in 8 parts of the time and 16 bands."""
    features = []
    for recording in recordings:
        samples = recording.samples / 32768
        frames = np.lib.stride_tricks.sliding_window_view(samples, 256)[::80]
        power = np.abs(np.fft.rfft(frames * np.hanning(256))[:, :128]) ** 2
        log = np.log(power.reshape(len(power), bands, -1).mean(-1) + 1e-6)
        means = [part.mean(0) for part in np.array_split(log, parts)]
        features.append(np.ravel(means) - log.mean())
    return np.array(features)


def test_digits_are_separable_but_not_trivial():
    train = make_digit_audio(200, seed=1)
    test = make_digit_audio(100, seed=2, split="test")
    x, y = spectra(train), np.array([int(r.text) for r in train])
    centers = np.stack([x[y == digit].mean(0) for digit in range(10)])
    distances = np.square(spectra(test)[:, None] - centers).sum(-1)
    is_right = distances.argmin(1) == [int(r.text) for r in test]
    assert 0.5 < is_right.mean() < 0.9


def test_recordings():
    recordings = make_digit_audio(100, snr=100)
    for samples, rate, text, _ in recordings:
        assert samples.dtype == "int16" and samples.ndim == 1 and rate == 8000
        assert 0.4 < len(samples) / rate < 1.2
        assert len(text) == 1
        assert 6500 < np.abs(samples).max() < 30_000
        spoken = np.flatnonzero(np.abs(samples) > 100)
        # Silence of 0.05 to 0.3 seconds, and of closures before and after T.
        for silence in (spoken[0], len(samples) - spoken[-1]):
            assert 0.04 < silence / rate < 0.45
    counts = collections.Counter(recording.text for recording in recordings)
    assert sorted(counts) == list("0123456789") and min(counts.values()) > 3


def test_snr():
    recordings = [make_digit_audio(1, seed=5, snr=snr)[0] for snr in (100, 10)]
    clean, noisy = (r.samples / np.abs(r.samples).max() for r in recordings)
    # 0.05 seconds of silence at least; the level of the speech is the same.
    clean = clean * (clean @ noisy) / (clean @ clean)
    noise = np.square(noisy[:400]).mean()
    speech = np.square(clean[np.abs(clean) > 1e-4 * clean.max()]).mean()
    assert 10 * np.log10(speech / noise) == pytest.approx(10, abs=1)


def test_sequences_of_digits():
    recordings = make_digit_audio(60, min_digits=2, max_digits=4)
    assert {len(r.text) for r in recordings} == {2, 3, 4}
    mean = {
        size: np.mean(
            [len(r.samples) for r in recordings if len(r.text) == size]
        )
        for size in (2, 3, 4)
    }
    assert mean[2] + 2000 < mean[3] < mean[4] - 2000
    assert len(DIGITS) == 10 and set().union(*DIGITS) == set(PHONES)


def test_splits_and_seeds():
    speakers = {
        split: {r.speaker for r in make_digit_audio(80, seed=3, split=split)}
        for split in ("train", "validation", "test")
    }
    train, validation, test = speakers.values()
    assert not train & validation and not train & test and not validation & test
    assert len(validation) == len(test) == 20 and len(train) > 50
    first, second = (
        [r.text for r in make_digit_audio(9, split=split, seed=3)]
        for split in ("validation", "test")
    )
    assert first != second
    kinds = collections.Counter(name.partition("_")[0] for name in test)
    assert kinds == {"man": 9, "woman": 7, "child": 4}
    first, again = (make_digit_audio(n, seed=1) for n in (2, 4))
    assert digest(first) == digest(again[:2])
    assert digest(first) != digest(make_digit_audio(2, seed=2))
    assert digest(make_digit_audio(5, max_digits=3)) == "2bc7d955e357122b"
    assert make_digit_audio(0) == []


@pytest.mark.parametrize(
    "name, value",
    [
        ("n", 1.0),
        ("seed", -1),
        ("split", "dev"),
        ("min_digits", 0),
        ("min_digits", 2),
        ("max_digits", 0),
        ("snr", (20, 10)),
    ],
)
def test_invalid_arguments_raise(name, value):
    arguments = {"n": 1, name: value}
    with pytest.raises(ValueError, match=f"`{name}` must be .*{name}="):
        make_digit_audio(arguments.pop("n"), **arguments)
