"""Morse code as sound: what is keyed when, the tone, and the noise."""

import numpy as np

RATE = 8000  # samples a second
AMPLITUDE = 0.15  # of the tone; the rest of [-1, 1] is room for noise
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


def dot_seconds(wpm):
    """Returns how long a dot is.

    A word is PARIS with the gap behind it, 50 dots; so n words a minute have
    dots of 60 / (50 n) seconds.

    Args:
        wpm: float. Speed in words a minute.

    Returns:
        Float, in seconds.

    Examples:
        >>> round(dot_seconds(12), 6)
        0.1
    """
    return 1.2 / wpm


def keying(text):
    """Says when the key is down.

    A dash is three dots long, a gap within a letter one, between letters
    three, between words seven.

    Args:
        text: str of letters and digits, words apart by one space.

    Returns:
        Tuple: bool (dots,), True where the key is down; and int
        (characters, 2), where each character begins and ends, in dots. That
        of a space is the gap between the words.

    Raises:
        ValueError: a text that has no code.

    Examples:
        >>> down, spans = keying("AT")
        >>> "".join("=" if key else "." for key in down), spans.tolist()
        ('=.===...===', [[0, 5], [8, 11]])
    """
    text = text.upper()
    if not text or text != " ".join(text.split()) or set(text) - {*CODE, " "}:
        raise ValueError(
            "`text` must be words of letters A to Z and digits, one space "
            f"between them. Received: {text!r}"
        )
    down, spans = [], []
    for number, word in enumerate(text.split()):
        if number:
            spans.append((len(down), len(down) + _WORD_GAP))
            down += [False] * _WORD_GAP
        for place, character in enumerate(word):
            down += [False] * _LETTER_GAP * (place > 0)
            start = len(down)
            for count, sign in enumerate(CODE[character]):
                down += [False] * (count > 0)
                down += [True] * (_DASH if sign == "-" else 1)
            spans.append((start, len(down)))
    return np.array(down), np.array(spans)


def keyed_tone(text, wpm, frequency, lead=0.1, tail=0.1, ramp=0.005, phase=0.0):
    """Makes a keyed tone.

    The tone rises and falls along a raised cosine, since a tone that is cut
    off clicks: its spectrum would be as wide as the band.

    Args:
        text: str, as for `keying`.
        wpm: float. Speed in words a minute.
        frequency: float, in Hz.
        lead: float. Silence in front, in seconds.
        tail: float. Silence behind, in seconds.
        ramp: float. How long the tone rises, and falls, in seconds; where it
            is at half its height the key goes down, and up.
        phase: float, in radians.

    Returns:
        Tuple: float32 (n,), samples at `RATE`, the amplitude of the tone
        `AMPLITUDE`; and float (characters, 2), where each character begins and
        ends, in seconds.

    Raises:
        ValueError: a text that has no code; a speed that is not positive; a
            frequency that is not below 4,000 Hz; less silence than the ramp.
    """
    if not wpm > 0:
        raise ValueError(f"`wpm` must be greater than 0. Received: wpm={wpm}")
    if not 0 < frequency < RATE / 2:
        raise ValueError(
            f"`frequency` must lie between 0 and {RATE / 2:,.0f} Hz. "
            f"Received: frequency={frequency}"
        )
    if not 0 < ramp <= min(lead, tail):
        raise ValueError(
            "`ramp` must be positive, and not longer than `lead` and `tail`. "
            f"Received: ramp={ramp}, lead={lead}, tail={tail}"
        )
    down, spans = keying(text)
    dot = dot_seconds(wpm)
    # Every edge is rounded by itself, so that errors do not add up.
    edges = np.round((lead + dot * np.arange(len(down) + 1)) * RATE).astype(int)
    envelope = np.zeros(edges[-1] + round(tail * RATE))
    for start, stop, key in zip(edges, edges[1:], down, strict=False):
        envelope[start:stop] = key
    rise = np.hanning(max(1, round(ramp * RATE)) + 2)
    envelope = np.convolve(envelope, rise / rise.sum(), "same")
    times = np.arange(len(envelope)) / RATE
    tone = np.sin(2 * np.pi * frequency * times + phase)
    samples = (AMPLITUDE * envelope * tone).astype("float32")
    return samples, lead + dot * spans


def noise_deviation(snr_db):
    """Returns the standard deviation of the noise beside a keyed tone.

    The power of a tone of amplitude A, while the key is down, is A^2 / 2; that
    of white noise is its variance, all of it between 0 and 4,000 Hz at 8,000
    samples a second:

        snr_db = 10 log10(A^2 / 2 / deviation^2)

    Args:
        snr_db: float. Tone over noise, in decibels.

    Returns:
        Float.
    """
    return AMPLITUDE * np.sqrt(0.5) * 10 ** (-snr_db / 20)
