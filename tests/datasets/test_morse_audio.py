"""Random messages in Morse code."""

import numpy as np
import pytest

from keras_attn.datasets import encode_morse, make_morse_audio, split_by_hash
from keras_attn.datasets.morse_audio import _ENGLISH_WORDS
from tests.helpers.digest import digest

pytestmark = pytest.mark.one_backend

SPLITS = "train", "validation", "test"


def test_messages():
    messages = make_morse_audio(300, seed=3)
    for message in messages:
        assert len(message.samples) <= 6.0 * message.sample_rate
        assert message.samples.dtype == "int16"
        assert message.spans.shape == (len(message.text), 2)
        assert 1 <= len(message.text) <= 20
        assert len(message.samples) - 8000 * message.spans[-1, 1] <= 3201
    for name, low, high in (
        ("wpm", 12, 30),
        ("frequency", 400, 1000),
        ("snr", -4, 8),
    ):
        drawn = [getattr(message, name) for message in messages]
        assert low <= min(drawn) < low + 0.1 * (high - low)
        assert high - 0.1 * (high - low) < max(drawn) <= high
    words = [word for message in messages for word in message.text.split()]
    assert set("".join(words)) == set("ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789")
    long = [word for word in words if len(word) > 2]
    assert 0.2 < np.mean([word in _ENGLISH_WORDS for word in long]) < 0.5
    assert 0.1 < np.mean([word.isdigit() for word in long]) < 0.4


def test_english_words():
    assert len(_ENGLISH_WORDS) == 162 == len(set(_ENGLISH_WORDS))
    assert all(2 <= len(word) <= 6 for word in _ENGLISH_WORDS)
    assert all(word.isascii() and word.isupper() for word in _ENGLISH_WORDS)


def test_tone_is_that_of_encode_morse():
    (message,) = make_morse_audio(1, wpm=20, frequency=500, snr=100)
    tone = encode_morse(message.text, wpm=20, frequency=500).samples
    # The same marks, at another time and in another phase.
    for (start, stop), (other, _) in zip(
        8000 * message.spans,
        8000 * encode_morse(message.text, wpm=20).spans,
        strict=True,
    ):
        length = int(stop - start)
        found, expected = (
            np.abs(np.fft.rfft(samples[round(first) :][:length]))
            for samples, first in ((message.samples, start), (tone, other))
        )
        np.testing.assert_allclose(found, expected, atol=0.03 * 1e6)


def test_splits_and_seeds():
    texts = {split: set() for split in SPLITS}
    for number, split in enumerate(SPLITS):
        for seed in (1, 2):
            messages = make_morse_audio(60, seed=seed, split=split, snr=5)
            texts[split] |= {message.text for message in messages}
        # The rule that users can apply to other texts.
        parts = split_by_hash(sorted(texts[split]))
        assert [bool(part) for part in parts] == [n == number for n in range(3)]
    first, again = (make_morse_audio(n, seed=1) for n in (2, 5))
    assert digest(first) == digest(again[:2])
    assert first[0].text != make_morse_audio(1, seed=2)[0].text
    assert digest(make_morse_audio(5)) == "20d538fd5670e6e3"
    assert make_morse_audio(0) == []


def test_shortest_messages():
    # One character at a time. Of all, only I is in the test split.
    options = {"wpm": (12, 12), "max_seconds": 2.7}
    messages = make_morse_audio(20, split="test", **options)
    assert all(len(m.samples) <= 2.7 * 8000 for m in messages)
    with pytest.raises(
        ValueError, match=r"`max_seconds` must be at least 2\.70"
    ):
        make_morse_audio(1, wpm=12, max_seconds=2.6)


@pytest.mark.parametrize(
    "name, value",
    [
        ("n", -1),
        ("seed", None),
        ("split", "dev"),
        ("max_seconds", float("inf")),
        ("wpm", 0),
        ("wpm", (20, 10)),
        ("frequency", (400, 1000, 2000)),
        ("frequency", True),
        ("snr", "5"),
        ("snr", (float("nan"), 5)),
    ],
)
def test_invalid_arguments_raise(name, value):
    arguments = {"n": 1, name: value}
    with pytest.raises(ValueError, match=f"`{name}` must be .*{name}="):
        make_morse_audio(arguments.pop("n"), **arguments)
