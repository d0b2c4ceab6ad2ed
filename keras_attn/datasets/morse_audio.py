"""make_morse_audio: random messages in Morse code, in noise."""

import math
from typing import TYPE_CHECKING

from keras_attn import checks
from keras_attn.datasets.content_split import split_of
from keras_attn.datasets.morse_code import (
    FREQUENCIES,
    SNRS,
    WPM,
    key,
    key_tone,
)
from keras_attn.datasets.number_ranges import number_range
from keras_attn.datasets.sampling import check_arguments
from keras_attn.datasets.stable_random import StableRandom

if TYPE_CHECKING:
    from keras_attn.datasets.morse_code import MorseMessage


_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_DIGITS = "0123456789"
_LONGEST_WORD, _MOST_WORDS = 6, 3
_SILENCE = 0.1, 0.4  # seconds, before and after a message
_LONGEST, _MOST_MESSAGES = 3600, 1_000_000
_ENGLISH_WORDS = """
    about after again all and answer apple ask baby bird black blue boat
    book bread bring but call car cat city cloud cold come corn dark day
    deep dinner door down dream drink each early east eat egg end every eye
    far field find fire fish five flower for four free friend from fruit
    garden girl give glass go gold good grass green hand happy have he head
    help high hill home horse house how ice if in jazz jump keep key king
    know lake large left letter light lion make many map moon mother music
    near new night no north not number ocean of old one open orange out
    paper park plant queen quick quiet rain read red river road sea see
    seven ship sing six sky snow song south star stone sun ten that the time
    train tree two van very view walk warm water we west white why wind
    winter with work yellow yes you young zebra zero zoo
    """.upper().split()


def make_morse_audio(
    n: int,
    *,
    seed: int = 0,
    split: str = "train",
    max_seconds: float = 6.0,
    wpm: float | tuple[float, float] = (12.0, 30.0),
    frequency: float | tuple[float, float] = (400.0, 1000.0),
    snr: float | tuple[float, float] = (-4.0, 8.0),
) -> "list[MorseMessage]":
    """Makes messages in Morse code, in noise.

    For speech recognition without speech: audio in, characters out, with the
    exact time of each character. A message has one to three words of one to six
    characters: random letters (half of the words), random digits (a quarter) or
    one of 162 English words (a quarter). Texts are upper case, so there are 37
    characters with the space, and at most 20 per text. The silence before and
    after a message is 0.1 to 0.4 seconds; the code is that of `encode_morse`.

    Of all texts, 1 in 20 is held out for the test split and 1 in 20 for the
    validation split, by a hash of the text (see `split_by_hash`).

    Args:
        n: int >= 0. Number of messages.
        seed: int >= 0. Default 0.
        split: "train", "validation" or "test". Default "train".
        max_seconds: float, at most 3600. Maximum duration; texts that would
            take longer are truncated. Default 6.
        wpm: float or pair of float in [1, 100]. Speed, or the range of the
            speeds, in words per minute. Default (12, 30).
        frequency: float or pair of float in [100, 3900]. Frequency of the tone,
            or its range, in Hz. Default (400, 1000).
        snr: float or pair of float in [-40, 100]. Signal-to-noise ratio, or its
            range, in dB; see `encode_morse`. Default (-4, 8).

    Returns:
        List of `MorseMessage`, with samples of 8,000 Hz.

    Raises:
        ValueError: an argument is invalid, or `max_seconds` is too short for a
            digit at the slowest speed.

    Examples:
        >>> messages = keras_attn.datasets.make_morse_audio(3, snr=20.0)
        >>> [message.text for message in messages]
        ['25', '32', 'LARGE UW']
        >>> messages[0].sample_rate, messages[0].spans.shape
        (8000, (2, 2))
    """
    check_arguments(n, seed, split, _MOST_MESSAGES)
    wpm = number_range("wpm", wpm, *WPM)
    frequency = number_range("frequency", frequency, *FREQUENCIES)
    snr = number_range("snr", snr, *SNRS)
    checks.between("max_seconds", max_seconds, 0, _LONGEST)
    # Every split has texts of one character.
    slowest = 2 * _SILENCE[1] + 1.2 / wpm[0] * len(key("0")[0])
    if max_seconds < slowest:
        raise ValueError(
            f"`max_seconds` must be at least {slowest:.2f}, for a digit at "
            f"{wpm[0]:g} words per minute. Received: max_seconds={max_seconds}"
        )
    random = StableRandom(seed)
    return [
        _message(random, split, max_seconds, wpm, frequency, snr)
        for _ in range(n)
    ]


def _message(random, split, max_seconds, wpm, frequency, snr):
    speed = random.between(*wpm)
    dots = (max_seconds - 2 * _SILENCE[1]) * speed / 1.2
    text = _text(random, dots)
    while split_of(text) != split:
        text = _text(random, dots)
    return key_tone(
        text,
        speed,
        random.between(*frequency),
        random.between(*snr),
        (random.between(*_SILENCE), random.between(*_SILENCE)),
        random.between(0, 2 * math.pi),
        random,
    )


def _text(random, dots):
    """Returns a random text that takes at most so many dots."""
    words = [_word(random) for _ in range(1 + random.integer(_MOST_WORDS))]
    text = " ".join(words)
    ends = key(text)[1][:, 1]
    return text[: int((ends <= dots).sum())].rstrip()


def _word(random):
    kind = random.integer(4)
    if kind == 0:
        return random.choice(_ENGLISH_WORDS)
    characters = _DIGITS if kind == 1 else _LETTERS
    size = 1 + random.integer(_LONGEST_WORD)
    return "".join(random.choice(characters) for _ in range(size))
