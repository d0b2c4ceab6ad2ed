"""Two letters keyed in noise: which one is the first?"""

from typing import NamedTuple

import numpy as np
from morse_code import AMPLITUDE, CODE, RATE, keyed_tone, noise_deviation

LETTERS = [sign for sign in CODE if sign.isalpha()]
SECONDS = 1.8
FRAME = 80  # samples, 10 ms
FRAMES = round(SECONDS * RATE) // FRAME


class MorseLetters(NamedTuple):
    """Holds sounds.

    Args:
        samples: float32 (B, n), `SECONDS` long.
        labels: int32 (B,), the first letter, a place in `LETTERS`.
        spans: int (B, 2), its first sample and the one behind its last.
        texts: list of B str, both letters.
    """

    samples: np.ndarray
    labels: np.ndarray
    spans: np.ndarray
    texts: list


def draw(count, seed=0, snr=6.0):
    """Draws sounds: letters, speed, pitch and the silence in front.

    Args:
        count: int >= 0. B.
        seed: int. The same seed draws the same. Default 0.
        snr: float. Tone over noise, in decibels. Default 6.0.

    Returns:
        `MorseLetters`.
    """
    generator = np.random.default_rng(seed)
    samples = noise_deviation(snr) * generator.standard_normal(
        (count, round(SECONDS * RATE)), "float32"
    )
    letters = generator.integers(len(LETTERS), size=(count, 2))
    texts = ["".join(LETTERS[i] for i in pair) for pair in letters]
    spans = np.zeros((count, 2), int)
    for row, text in enumerate(texts):
        lead = generator.uniform(0.05, 0.2)
        sound, seconds = keyed_tone(
            text,
            wpm=generator.uniform(22, 28),
            frequency=generator.uniform(500, 700),
            lead=lead,
            tail=0.01,
            phase=generator.uniform(0, 2 * np.pi),
        )
        samples[row, : len(sound)] += sound
        spans[row] = np.round(seconds[0] * RATE)
    return MorseLetters(samples, letters[:, 0].astype("int32"), spans, texts)


def loudness(samples):
    """Returns how loud each frame is, what a network reads.

        r = sqrt(mean of the squares) / amplitude of the tone

    Args:
        samples: float (B, n), `SECONDS` long.

    Returns:
        Float32 (B, `FRAMES`, 1): 0 where there is silence.
    """
    frames = np.reshape(samples, (len(samples), FRAMES, FRAME))
    power = np.square(frames, dtype="float32").mean(axis=-1, keepdims=True)
    return (np.sqrt(power) / AMPLITUDE).astype("float32")
