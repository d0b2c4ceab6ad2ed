"""Morse code as audio."""

import numpy as np
import pytest

from keras_attn.datasets import encode_morse
from keras_attn.datasets.morse_code import CODE, key
from tests.helpers.digest import digest

pytestmark = pytest.mark.one_backend

RATE = 8000


def runs(mask):
    """Lengths of the runs of True and of the gaps between them."""
    edges = np.flatnonzero(np.diff(np.concatenate([[0], mask, [0]])))
    return edges[1::2] - edges[::2], edges[2::2] - edges[1:-1:2]


def is_down(samples, frequency):
    """Where a tone is above half of its amplitude."""
    times = np.arange(len(samples)) / RATE
    turned = samples * np.exp(-2j * np.pi * frequency * times)
    period = round(RATE / frequency)
    height = np.abs(np.convolve(turned, np.ones(period) / period, "same"))
    return height > height.max() / 2


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


@pytest.mark.parametrize("wpm", [12, 17.3, 30])
@pytest.mark.parametrize("frequency", [400, 1000])
def test_durations_of_marks_and_gaps(wpm, frequency):
    message = encode_morse("paris 59 e", wpm=wpm, frequency=frequency)
    samples, dot = message.samples, 1.2 / wpm
    assert message.text == "PARIS 59 E" and samples.dtype == "int16"
    down, _ = key(message.text)
    assert len(samples) / RATE == pytest.approx(0.2 + dot * len(down), abs=2e-4)
    found = runs(is_down(samples, frequency))
    for lengths, expected in zip(found, runs(down), strict=True):
        np.testing.assert_allclose(lengths / RATE, dot * expected, atol=2e-3)
    assert message.spans.shape == (10, 2)
    assert message.spans[0, 0] == pytest.approx(0.1)
    assert message.spans[-1, 1] == pytest.approx(0.1 + dot * len(down))


def test_tone_has_its_frequency_and_no_clicks():
    samples = encode_morse("TTTT", frequency=630).samples
    power = np.square(np.abs(np.fft.rfft(samples.astype(float))))
    frequencies = np.fft.rfftfreq(len(samples), 1 / RATE)
    assert frequencies[power.argmax()] == pytest.approx(630, abs=5)
    far = np.abs(frequencies - 630) > 400
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


def test_digest():
    message = encode_morse("the end 73", snr=3.0, seed=1)
    assert digest(message) == "82b09b28df3b5470"


@pytest.mark.parametrize("text", ["", " A", "A ", "A  B", "É", "A\nB", "?", 7])
def test_text_without_a_code_raises(text):
    with pytest.raises(ValueError, match=r"`text` must be .*Received: text="):
        encode_morse(text)


@pytest.mark.parametrize(
    "name, value",
    [
        ("wpm", 0),
        ("wpm", "fast"),
        ("frequency", 4000),
        ("snr", float("nan")),
        ("silence", 0),
        ("seed", -1),
    ],
)
def test_invalid_arguments_raise(name, value):
    with pytest.raises(ValueError, match=f"`{name}` must be .*{name}="):
        encode_morse("A", **{name: value})
