"""Synthetic speech of digits, and Morse code of given and random texts."""

import collections

import numpy as np
import pytest

from keras_attn.datasets import (
    digit_audio,
    encode_morse,
    make_digit_audio,
    make_morse_audio,
)
from keras_attn.datasets.digit_phones import DIGITS, PHONES
from keras_attn.datasets.formant_synthesizer import Voice, synthesize
from keras_attn.datasets.morse_audio import _ENGLISH_WORDS
from keras_attn.datasets.morse_code import CODE, key
from keras_attn.datasets.stable_random import StableRandom
from tests.helpers.audio import formants, has_tone, log_spectrum, runs
from tests.helpers.digest import digest

RATE = 8000
# Averages of men (Peterson and Barney 1952, table II).
FORMANTS = """IY 270 2290 3010, IH 390 1990 2550, EH 530 1840 2480,
AA 730 1090 2440, AO 570 840 2410, UH 440 1020 2240, UW 300 870 2240,
AH 640 1190 2390""".split(",")


def spoken(phone, seconds, pitch, voice):
    random = StableRandom(1)
    return synthesize([PHONES[phone]], [0, seconds], pitch, voice, random)


@pytest.mark.parametrize("line", FORMANTS)
def test_formants_of_vowels(line):
    vowel, *hertz = line.split()
    expected = np.array(hertz, float)
    for scale in (1.0, 1.15):
        voice = Voice((scale,) * 4, 100.0, 1.0, 120.0, 0.05)
        sound = spoken(vowel, 0.25, [(0, 100.0)], voice)
        # Linear prediction favors the harmonics, which are 100 Hz apart.
        found = formants(sound[800:1600])[:3] / scale
        np.testing.assert_allclose(found, expected, rtol=0.05, atol=20)


def test_pitch():
    voice = Voice((1.0,) * 4, 150.0, 1.0, 120.0, 0.0)
    sound = spoken("AH", 0.5, [(0, 200.0), (0.5, 100.0)], voice)
    for start in (400, 2000, 3200):
        part = sound[start : start + 400]
        lags = np.correlate(part, part, "full")[399:]
        period = 30 + lags[30:100].argmax()
        middle = 200 - 200 * (start + 200) / RATE
        assert RATE / period == pytest.approx(middle, rel=0.05)


def test_spoken_digits():
    recordings = make_digit_audio(150, snr=100)
    spectra = collections.defaultdict(list)
    for samples, rate, text, _ in recordings:
        assert samples.dtype == "int16" and samples.ndim == 1 and rate == RATE
        assert 0.4 < len(samples) / RATE < 1.2
        assert 6500 < np.abs(samples).max() < 30_000
        loud = np.flatnonzero(np.abs(samples) > 100)
        # Silence of 0.05 to 0.3 seconds, and of closures before and after T.
        for silence in (loud[0], len(samples) - loud[-1]):
            assert 0.04 < silence / RATE < 0.45
        spectra[text].append(log_spectrum(samples / 32768))
    assert sorted(spectra) == list("0123456789")
    # Digits of other speakers can be told apart, but not trivially.
    centers = {text: np.mean(found, 0) for text, found in spectra.items()}
    correct = []
    for samples, _, text, _ in make_digit_audio(60, split="test", snr=100):
        spectrum = log_spectrum(samples / 32768)
        distances = {
            t: np.linalg.norm(c - spectrum) for t, c in centers.items()
        }
        correct.append(min(distances, key=distances.get) == text)
    assert 0.5 < np.mean(correct) < 0.9


def test_noise_of_spoken_digits():
    recordings = [make_digit_audio(1, seed=5, snr=snr)[0] for snr in (100, 10)]
    clean, noisy = (r.samples / np.abs(r.samples).max() for r in recordings)
    # 0.05 seconds of silence at least; the level of the speech is the same.
    clean = clean * (clean @ noisy) / (clean @ clean)
    noise = np.square(noisy[:400]).mean()
    speech = np.square(clean[np.abs(clean) > 1e-4 * clean.max()]).mean()
    assert 10 * np.log10(speech / noise) == pytest.approx(10, abs=1)


def test_sequences_of_digits():
    sizes = collections.defaultdict(list)
    for recording in make_digit_audio(40, min_digits=2, max_digits=4):
        sizes[len(recording.text)].append(len(recording.samples))
    mean = {size: np.mean(lengths) for size, lengths in sizes.items()}
    assert set(mean) == {2, 3, 4}
    assert mean[2] + 2000 < mean[3] < mean[4] - 2000
    assert len(DIGITS) == 10 and set().union(*DIGITS) == set(PHONES)


def test_speakers(monkeypatch):
    monkeypatch.setattr(digit_audio, "_speak", lambda *_: None)
    speakers, texts = [], set()
    for split in ("train", "validation", "test"):
        recordings = make_digit_audio(1999, split=split)
        speakers.append({one.speaker for one in recordings})
        texts.add("".join(one.text for one in recordings))
    assert list(map(len, speakers)) == [160, 20, 20]
    assert len(set().union(*speakers)) == 200
    kinds = collections.Counter(name.split("_")[0] for name in speakers[2])
    assert kinds == {"man": 9, "woman": 7, "child": 4}
    # The splits do not have the same digits in the same order.
    assert len(texts) == 3


def test_codes():
    assert len(CODE) == 36 == len(set(CODE.values()))
    assert [CODE[letter] for letter in "SOS5"] == ["...", "---", "...", "....."]
    assert {len(CODE[digit]) for digit in "0123456789"} == {5}
    down, spans = key("PARIS PARIS")
    # The definition of a word per minute: 50 dots, with the gap.
    assert spans[6, 0] == 50 and len(down) == 50 + 43
    assert spans[5].tolist() == [43, 50]
    for letter, (start, stop) in zip("PARIS", spans[:5], strict=True):
        marks, gaps = runs(down[start:stop])
        assert "".join(".?-"[mark - 1] for mark in marks) == CODE[letter]
        assert set(gaps) <= {1}
    message = encode_morse("the end 73", snr=3.0, seed=1)
    assert digest(message) == "82b09b28df3b5470"


@pytest.mark.parametrize("wpm, frequency", [(12, 1000), (17.3, 630), (30, 400)])
def test_marks_and_gaps(wpm, frequency):
    options = {"wpm": wpm, "frequency": frequency}
    given = encode_morse("paris 59 e", **options)
    assert given.text == "PARIS 59 E" and given.spans.shape == (10, 2)
    assert given.spans[0, 0] == pytest.approx(0.1)
    dot = 1.2 / wpm
    for message in (given, *make_morse_audio(1, snr=100, **options)):
        samples, (down, _) = message.samples, key(message.text)
        start, stop = message.spans[0, 0], message.spans[-1, 1]
        assert stop == pytest.approx(start + dot * len(down))
        assert samples.dtype == "int16" and len(samples) > RATE * stop
        found = runs(has_tone(samples, frequency))
        for lengths, dots in zip(found, runs(down), strict=True):
            np.testing.assert_allclose(lengths / RATE, dot * dots, atol=2e-3)
    end = len(given.samples) / RATE
    assert end == pytest.approx(given.spans[-1, 1] + 0.1, abs=2e-4)
    # The tone has its frequency, and no clicks.
    power = np.square(np.abs(np.fft.rfft(given.samples.astype(float))))
    frequencies = np.fft.rfftfreq(len(given.samples), 1 / RATE)
    assert frequencies[power.argmax()] == pytest.approx(frequency, abs=5)
    far = np.abs(frequencies - frequency) > 400
    assert power[far].sum() < 1e-4 * power.sum()


# At -8 dB the tone is softer, so that the noise is not clipped.
@pytest.mark.parametrize("snr", [-8.0, 0.0, 10.0])
def test_noise_matches_the_signal_to_noise_ratio(snr):
    noise, tone = [], []
    for seed in range(10):
        message = encode_morse("TTTT", wpm=5, snr=snr, silence=0.3, seed=seed)
        start, stop = (message.spans[0] * RATE).astype(int)
        noise.append(message.samples[: start - 100] / 32767)
        tone.append(message.samples[start + 100 : stop - 100] / 32767)
    power_of_noise = np.square(noise).mean()
    power_of_tone = np.square(tone).mean() - power_of_noise
    measured = 10 * np.log10(power_of_tone / power_of_noise)
    assert measured == pytest.approx(snr, abs=0.5)
    # White: equal power in each quarter of 0 to 4,000 Hz.
    spectrum = np.square(np.abs(np.fft.rfft(noise)))[:, 1:].sum(0)
    quarters = [part.sum() for part in np.array_split(spectrum, 4)]
    np.testing.assert_allclose(quarters / spectrum.sum(), 0.25, atol=0.03)


def test_random_messages():
    messages = make_morse_audio(150, seed=3)
    for message in messages:
        assert len(message.samples) <= 6.0 * message.sample_rate
        assert message.samples.dtype == "int16"
        assert message.spans.shape == (len(message.text), 2)
        assert 1 <= len(message.text) <= 20
        assert len(message.samples) - 8000 * message.spans[-1, 1] <= 3201
    ranges = {"wpm": (12, 30), "frequency": (400, 1000), "snr": (-4, 8)}
    for name, (low, high) in ranges.items():
        drawn = [getattr(message, name) for message in messages]
        assert low <= min(drawn) < low + 0.1 * (high - low)
        assert high - 0.1 * (high - low) < max(drawn) <= high
    words = [word for message in messages for word in message.text.split()]
    assert set("".join(words)) == set(CODE)
    long = [word for word in words if len(word) > 2]
    assert 0.2 < np.mean([word in _ENGLISH_WORDS for word in long]) < 0.5
    assert 0.1 < np.mean([word.isdigit() for word in long]) < 0.4
    # One character at a time. Of all, only I is in the test split.
    short = make_morse_audio(9, split="test", wpm=(12, 12), max_seconds=2.7)
    assert all(len(message.samples) <= 2.7 * 8000 for message in short)
