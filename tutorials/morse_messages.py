"""Morse messages: random words, keyed at random speeds, in noise."""

import functools
import hashlib
from typing import Any, NamedTuple

import morse_code
import numpy as np
import phrase_grammar

ALPHABET = " 0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"
SPEEDS = (12.0, 30.0)  # words a minute
TONES = (400.0, 1000.0)  # Hz
RATIOS = (-4.0, 8.0)  # dB, of messages to learn from
_LETTERS, _DIGITS = ALPHABET[11:], ALPHABET[1:11]
_LONGEST_WORD, _MOST_WORDS = 6, 3
# Characters: the words, a space between them, and the end.
LONGEST_TEXT = _MOST_WORDS * (_LONGEST_WORD + 1)
_LEAST_SILENCE, _MOST_SILENCE = 0.1, 0.4  # seconds, in front and behind
_TEST_SHARE = 8  # one text in so many is for tests only


class Message(NamedTuple):
    """Holds a message and what it sounds like.

    Args:
        samples: float32 (n,), in [-1, 1], at `morse_code.RATE`.
        text: str.
        spans: float (characters, 2). When each character is keyed, from the
            beginning to the end, in seconds.
        wpm: float. Words a minute.
        frequency: float, in Hz.
        snr: float. Tone over noise, in decibels.
    """

    samples: Any
    text: str
    spans: Any
    wpm: float
    frequency: float
    snr: float


def is_for_tests(text):
    """Says whether no set of messages to learn from may hold a text.

    It depends on the text alone, and so never on a seed.
    """
    digest = hashlib.sha256(text.encode("utf-8")).digest()
    return digest[0] % _TEST_SHARE == 0


def make_message(text, wpm, frequency, snr, generator):
    """Keys a text in noise.

    Args:
        text: str of letters and digits, words apart by one space.
        wpm: float. Words a minute.
        frequency: float, in Hz.
        snr: float. Tone over noise, in decibels.
        generator: `numpy.random.Generator`, of the noise, and of the silence
            around the text, 0.1 to 0.4 seconds on each side.

    Returns:
        A `Message`.

    Raises:
        ValueError: what `morse_code.keyed_tone` refuses.
    """
    lead, tail = generator.uniform(_LEAST_SILENCE, _MOST_SILENCE, 2)
    phase = generator.uniform(0, 2 * np.pi)
    samples, spans = morse_code.keyed_tone(
        text, wpm, frequency, lead, tail, phase=phase
    )
    noise = generator.standard_normal(len(samples), "float32")
    samples = samples + np.float32(morse_code.noise_deviation(snr)) * noise
    samples = np.clip(samples, -1, 1)
    return Message(samples, text.upper(), spans, wpm, frequency, snr)


def draw_messages(count, longest, seed, tests=False, snr=None, wpm=None):
    """Draws messages.

    Args:
        count: int.
        longest: float. Most seconds that a message takes; at slow speeds the
            texts are the shorter for it.
        seed: int, or a tuple of them.
        tests: bool. Whether the texts are such as no training has seen.
        snr: float. Tone over noise in decibels; default: drawn from `RATIOS`.
        wpm: float. Words a minute; default: drawn from `SPEEDS`.

    Returns:
        List of `Message`.

    Raises:
        ValueError: `longest` leaves no room for a character.
    """
    generator = np.random.default_rng([*np.atleast_1d(seed), int(tests)])
    messages = []
    while len(messages) < count:
        speed = generator.uniform(*SPEEDS) if wpm is None else wpm
        text = draw_text(generator, speed, longest - 2 * _MOST_SILENCE)
        if is_for_tests(text) != tests:
            continue
        ratio = generator.uniform(*RATIOS) if snr is None else snr
        messages.append(
            make_message(
                text, speed, generator.uniform(*TONES), ratio, generator
            )
        )
    return messages


def draw_text(generator, wpm, seconds):
    """Draws one to three words that take no longer than they may.

    Half of the words are random letters, a quarter random digits, and a
    quarter English words of the phrase grammar; one to six characters each.

    Args:
        generator: `numpy.random.Generator`.
        wpm: float. Words a minute.
        seconds: float. Most seconds; what comes later is cut off.

    Returns:
        Str.

    Raises:
        ValueError: the first character takes longer already.
    """
    count = generator.integers(1, _MOST_WORDS + 1)
    drawn = [_word(generator) for _ in range(count)]
    text = " ".join(drawn)
    _, spans = morse_code.keying(text)
    room = seconds / morse_code.dot_seconds(wpm)
    text = text[: int((spans[:, 1] <= room).sum())].rstrip()
    if not text:
        raise ValueError(
            f"`seconds` must leave room for {drawn[0][0]!r} at {wpm:.1f} words "
            f"a minute. Received: seconds={seconds:.2f}"
        )
    return text


def _word(generator):
    kind = generator.integers(4)
    if kind == 0:
        return str(generator.choice(_english_words()))
    letters = _DIGITS if kind == 1 else _LETTERS
    size = generator.integers(1, _LONGEST_WORD + 1)
    return "".join(generator.choice(list(letters), size))


@functools.cache
def _english_words():
    pairs = phrase_grammar.generate_pairs(300)
    words = {word.upper() for english, _ in pairs for word in english.split()}
    return sorted(word for word in words if len(word) <= _LONGEST_WORD)
