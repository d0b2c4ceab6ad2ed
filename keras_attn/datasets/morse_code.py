"""encode_morse: a text in Morse code, as audio."""

from typing import Any, NamedTuple

import numpy as np

from keras_attn import checks
from keras_attn.datasets.stable_random import StableRandom

SAMPLE_RATE = 8000
WPM = 1.0, 100.0
FREQUENCIES = 100.0, 3900.0
SNRS = -40.0, 100.0
_LONGEST = 3600.0  # seconds
CODE = dict(
    pair.split(":")
    for pair in """
    A:.- B:-... C:-.-. D:-.. E:. F:..-. G:--. H:.... I:.. J:.--- K:-.- L:.-..
    M:-- N:-. O:--- P:.--. Q:--.- R:.-. S:... T:- U:..- V:...- W:.-- X:-..-
    Y:-.-- Z:--.. 0:----- 1:.---- 2:..--- 3:...-- 4:....- 5:..... 6:-....
    7:--... 8:---.. 9:----.
    """.split()
)
_DASH, _LETTER_GAP, _WORD_GAP = 3, 3, 7  # in dots
_AMPLITUDE = 0.15  # of the tone, of a full scale of 1
# The edge of a mark is a raised cosine of 5 ms. A tone that starts at once has
# a wide spectrum, heard as a click.
_RISE = np.hanning(43) / np.hanning(43).sum()


class MorseMessage(NamedTuple):
    """A text in Morse code.

    Args:
        samples: int16 (T,). Audio samples.
        sample_rate: int. 8,000 Hz.
        text: str of upper-case letters, digits and single spaces.
        spans: float64 (characters, 2). Start and end of each character, in
            seconds. That of a space is the gap between the words.
        wpm: float. Speed, in words per minute.
        frequency: float. Frequency of the tone, in Hz.
        snr: float. Power of the tone over that of the noise, in dB; None: no
            noise.

    Examples:
        >>> message = keras_attn.datasets.encode_morse("SOS", wpm=12)
        >>> (message.spans * 10).round().tolist()  # in dots of 0.1 seconds
        [[1.0, 6.0], [9.0, 20.0], [23.0, 28.0]]
    """

    samples: Any
    sample_rate: int
    text: str
    spans: Any
    wpm: float
    frequency: float
    snr: float


def encode_morse(
    text: str,
    *,
    wpm: float = 20.0,
    frequency: float = 600.0,
    snr: float | None = None,
    silence: float = 0.1,
    seed: int = 0,
) -> MorseMessage:
    """Encodes a text as a tone in international Morse code.

    A dash has the length of three dots. The gaps within a letter, between
    letters and between words have the lengths of one, three and seven dots
    (ITU-R M.1677-1). At n words per minute, a dot takes 60 / (50 n) seconds,
    because the word PARIS and the gap after it are 50 dots.

    Args:
        text: str of letters A to Z and digits, in upper or lower case, with
            single spaces between words. It must take at most an hour.
        wpm: float in [1, 100]. Speed, in words per minute. Default 20.
        frequency: float in [100, 3900]. Frequency of the tone, in Hz. Default
            600.
        snr: float in [-40, 100]. Power of the tone during a mark over the power
            of white noise in the whole band of 4,000 Hz, in dB. Default None:
            no noise.
        silence: float in [0.01, 60]. Silence before the first and after the
            last mark, in seconds. Default 0.1.
        seed: int >= 0. Seed of the noise. Default 0.

    Returns:
        `MorseMessage`, with samples of 8,000 Hz.

    Raises:
        ValueError: a character without a code, or another invalid argument.

    Examples:
        >>> message = keras_attn.datasets.encode_morse("cq de k1", snr=6.0)
        >>> message.text, message.samples.dtype, message.samples.shape
        ('CQ DE K1', dtype('int16'), (40480,))
    """
    checks.string("text", text)
    checks.between("wpm", wpm, *WPM)
    checks.between("frequency", frequency, *FREQUENCIES)
    if snr is not None:
        checks.between("snr", snr, *SNRS)
    checks.between("silence", silence, 0.01, 60.0)
    random = StableRandom(checks.integer("seed", seed, 0))
    seconds = 1.2 / wpm * len(key(text)[0])
    if seconds > _LONGEST:
        raise ValueError(
            f"`text` must take at most {_LONGEST:g} seconds. Received: a text "
            f"of {seconds:g} seconds at {wpm:g} words per minute"
        )
    return key_tone(text, wpm, frequency, snr, (silence, silence), 0.0, random)


def key_tone(
    text: str,
    wpm: float,
    frequency: float,
    snr: float | None,
    silence: tuple[float, float],
    phase: float,
    random: StableRandom,
) -> MorseMessage:
    """Makes a message; arguments as for `encode_morse`, unchecked.

    Args:
        text: str.
        wpm: float.
        frequency: float.
        snr: float or None.
        silence: pair of float. Seconds before and after.
        phase: float. Phase of the tone at time 0, in radians.
        random: `StableRandom`. Draws the noise.

    Returns:
        `MorseMessage`.
    """
    is_down, spans = key(text)
    dot = 1.2 / wpm
    # Each edge is rounded by itself, so that errors do not add up.
    edges = silence[0] + dot * np.arange(len(is_down) + 1)
    edges = np.rint(edges * SAMPLE_RATE).astype(int)
    after = np.zeros(round(silence[1] * SAMPLE_RATE))
    envelope = np.concatenate(
        [np.zeros(edges[0]), np.repeat(is_down, np.diff(edges)), after]
    )
    envelope = np.convolve(envelope, _RISE, "same")
    times = np.arange(len(envelope)) / SAMPLE_RATE
    samples = envelope * np.sin(2 * np.pi * frequency * times + phase)
    amplitude = _AMPLITUDE
    if snr is not None:
        # The mean power of a sine of amplitude 1 is 1/2.
        deviation = np.sqrt(0.5) * 10 ** (-snr / 20)
        # Clips at four standard deviations or more.
        amplitude = min(amplitude, 1 / (1 + 4 * deviation))
        samples += deviation * random.normal(len(samples))
    samples = np.rint(32767 * np.clip(amplitude * samples, -1, 1))
    return MorseMessage(
        samples.astype("int16"),
        SAMPLE_RATE,
        text.upper(),
        silence[0] + dot * spans,
        float(wpm),
        float(frequency),
        None if snr is None else float(snr),
    )


def key(text: str) -> tuple[Any, ...]:
    """Returns when the key is down.

    Args:
        text: str of letters, digits and single spaces.

    Returns:
        Tuple: float (dots,), 1 where the key is down, else 0; and int
        (characters, 2), start and end of each character, in dots.

    Raises:
        ValueError: a text that has no code.

    Examples:
        >>> from keras_attn.datasets.morse_code import key
        >>> is_down, spans = key("AT")
        >>> "".join(".="[int(down)] for down in is_down), spans.tolist()
        ('=.===...===', [[0, 5], [8, 11]])
    """
    words = text.upper().split(" ")
    # The upper case of some other letters, such as `ß`, is A to Z.
    is_ascii = text.isascii()
    if not is_ascii or not all(words) or not set("".join(words)) <= set(CODE):
        raise ValueError(
            "`text` must be words of letters A to Z and digits, with single "
            f"spaces between them. Received: text={checks.shown(text)}"
        )
    is_down, spans = [], []
    for number, word in enumerate(words):
        if number:
            spans.append((len(is_down), len(is_down) + _WORD_GAP))
            is_down += [0.0] * _WORD_GAP
        for index, character in enumerate(word):
            is_down += [0.0] * _LETTER_GAP * (index > 0)
            start = len(is_down)
            for count, mark in enumerate(CODE[character]):
                is_down += [0.0] * (count > 0)
                is_down += [1.0] * (_DASH if mark == "-" else 1)
            spans.append((start, len(is_down)))
    return np.array(is_down), np.array(spans)
