"""make_digit_audio: synthetic speech of English digits."""

import functools

import numpy as np

from keras_attn import checks
from keras_attn.datasets.content_split import SPLITS
from keras_attn.datasets.digit_phones import DIGITS, PHONES
from keras_attn.datasets.formant_synthesizer import (
    SAMPLE_RATE,
    Voice,
    synthesize,
)
from keras_attn.datasets.number_ranges import number_range
from keras_attn.datasets.recording import Recording
from keras_attn.datasets.sampling import check_arguments
from keras_attn.datasets.stable_random import StableRandom

_SPEAKERS = 200
_MOST_DIGITS = 1_000_000  # in all recordings: 12 GB of samples
# Kinds of speakers: how many of 20, factor of the formants, pitch in Hz.
_KINDS = {
    "man": (9, 1.0, 132.0),
    "woman": (7, 1.17, 223.0),
    "child": (4, 1.3, 264.0),
}
_SILENCE = 0.05, 0.3  # seconds, before and after
_PAUSE = 0.03, 0.2  # between digits
_SILENT = {"voicing": 0.0, "aspiration": 0.0, "frication": 0.0}


def make_digit_audio(
    n: int,
    *,
    seed: int = 0,
    split: str = "train",
    min_digits: int = 1,
    max_digits: int = 1,
    snr: float | tuple[float, float] = (10.0, 30.0),
) -> list[Recording]:
    """Makes synthetic speech of English digits.

    For small speech recognizers: ten words, "zero" to "nine", by many speakers.
    With `max_digits` above 1, digits follow each other after pauses of 0.03 to
    0.2 seconds. This is no human speech: each word is a sequence of speech
    sounds from a formant synthesizer, with harmonics of a falling pitch for
    voiced sounds and filtered noise for others. The vowels have the mean
    formants of Peterson and Barney 1952
    (https://doi.org/10.1121/1.1906875), the consonants those of Klatt 1980
    (https://doi.org/10.1121/1.383940). A recording of one digit takes about
    0.4 to 1.2 seconds, with 0.05 to 0.3 seconds of silence before and after.

    There are 200 speakers: 90 men, 70 women and 40 children, who differ in the
    length of the vocal tract, pitch, speed and voice quality. A tenth of each
    kind is held out for the test split, another tenth for the validation split.

    Args:
        n: int >= 0. Number of recordings.
        seed: int >= 0. Default 0.
        split: "train" (160 speakers), "validation" or "test" (20 each). Default
            "train".
        min_digits: int >= 1. Minimum number of digits. Default 1.
        max_digits: int in [min_digits, 100]. Maximum number of digits. Default
            1.
        snr: float or pair of float in [-40, 100]. Ratio of speech to white
            noise, or its range, in dB. Default (10, 30).

    Returns:
        List of `Recording`, with samples of 8,000 Hz, a text such as "7" or
        "407", and a speaker such as "woman_012".

    Raises:
        ValueError: an argument is invalid.

    Examples:
        >>> recordings = keras_attn.datasets.make_digit_audio(2, max_digits=3)
        >>> [(recording.text, recording.speaker) for recording in recordings]
        [('0', 'man_076'), ('24', 'woman_126')]
        >>> recordings[0].samples.dtype, recordings[0].sample_rate
        (dtype('int16'), 8000)
    """
    checks.integer("max_digits", max_digits, 1, 100)
    checks.integer("min_digits", min_digits, 1, max_digits)
    check_arguments(n, seed, split, _MOST_DIGITS // max_digits)
    snr = number_range("snr", snr, -40, 100)
    remainders = {"test": [0], "validation": [1]}.get(split, range(2, 10))
    speakers = [s for s in range(_SPEAKERS) if s % 10 in remainders]
    # Else the digits of all splits would be the same, in the same order.
    random = StableRandom(seed, SPLITS.index(split))
    recordings = []
    for _ in range(n):
        count = min_digits + random.integer(max_digits - min_digits + 1)
        digits = [random.integer(10) for _ in range(count)]
        speaker = random.choice(speakers)
        samples = _speak(digits, _voice(speaker), snr, random)
        text = "".join(map(str, digits))
        name = f"{_kind(speaker)}_{speaker:03d}"
        recordings.append(Recording(samples, SAMPLE_RATE, text, name))
    return recordings


def _kind(speaker):
    index = speaker // 10 % 20
    for kind, (count, *_) in _KINDS.items():
        if index < count:
            return kind
        index -= count


@functools.cache
def _voice(speaker):
    """Returns the `Voice` of a speaker, whatever the seed of the data."""
    random = StableRandom(0, speaker)
    _, scale, pitch = _KINDS[_kind(speaker)]
    scale *= random.between(0.93, 1.07)
    return Voice(
        tuple(scale * random.between(0.96, 1.04) for _ in range(4)),
        pitch * random.between(0.85, 1.15),
        random.between(0.8, 1.25),
        random.between(80, 200),
        random.between(0.0, 0.1),
    )


def _speak(digits, voice, snr, random):
    """Returns the int16 samples of a recording."""
    rate = voice.rate * random.between(0.9, 1.1)
    mean = voice.pitch * random.between(0.92, 1.08)
    phones, starts, pitch, now = [], [0.0], [], 0.0
    for number, digit in enumerate(digits):
        names = DIGITS[digit]
        now += random.between(*(_PAUSE if number else _SILENCE))
        phones.append(PHONES[names[0]]._replace(**_SILENT))
        starts.append(now)
        begin = now
        for name in names:
            phone = PHONES[name]
            now += phone.duration / rate * random.between(0.8, 1.25)
            formants = [f * random.between(0.95, 1.05) for f in phone.formants]
            phones.append(phone._replace(formants=formants))
            starts.append(now)
        pitch.append((begin, mean * random.between(1.0, 1.2)))
        pitch.append((now, mean * random.between(0.75, 0.95)))
    phones.append(PHONES[names[-1]]._replace(**_SILENT))
    starts.append(now + random.between(*_SILENCE))
    samples = synthesize(phones, starts, pitch, voice, random)
    power = np.square(samples[samples != 0]).mean()
    ratio = random.between(*snr)
    deviation = np.sqrt(power) * 10 ** (-ratio / 20)
    samples += deviation * random.normal(len(samples))
    samples *= random.between(0.2, 0.9) / np.abs(samples).max()
    return np.rint(32767 * samples).astype("int16")
