"""What a recogniser learns from and is tested on: Morse code, or digits."""

from typing import Any, NamedTuple

import morse_messages
import numpy as np
import spoken_digits
from length_batches import few_lengths

_PART = 500  # messages whose waveforms are in memory at once
# How many of the messages, from the shortest on, the first epoch draws from:
# more than a third, so that its batches have two lengths.
_FIRST_SHARE = 0.4


class Fold(NamedTuple):
    """Holds sounds to learn from, and others to test on.

    Args:
        name: str. The speaker that is left out; empty: Morse code.
        draw: callable on the number of an epoch, which returns a list of
            (frames float (F, bands), text).
        tests: list of sounds with `samples`, `text` and `spans`.
        alphabet: str. The characters of the texts.
        longest: int. Characters that a text has room for, its end included.
        lengths: tuple of int. Lengths in frames that sounds are padded to.
    """

    name: str
    draw: Any
    tests: list
    alphabet: str
    longest: int
    lengths: tuple


def morse_fold(run, log_mel):
    """Draws Morse messages; the first epochs are of the short ones among them.

    Args:
        run: `speech_settings.Settings`.
        log_mel: `LogMel`.

    Returns:
        A `Fold`. Its tests have texts that are not learned from, at 0 dB.
    """
    examples = []
    for first in range(0, run.messages, _PART):
        count = min(_PART, run.messages - first)
        messages = morse_messages.draw_messages(
            count, run.longest, (run.seed, first)
        )
        frames = log_mel([message.samples for message in messages])
        examples += [
            # Half the memory, and far finer than the noise.
            (sound.astype("float16"), message.text)
            for sound, message in zip(frames, messages, strict=True)
        ]
        print(f"{first + count:,} messages", end="\r", flush=True)
    print()
    tests = morse_messages.draw_messages(
        run.tests, run.longest, run.seed, tests=True, snr=0.0
    )
    most = log_mel.frames(round(run.longest * log_mel.rate))
    sizes = [*(len(frames) for frames, _ in examples), most]
    return Fold(
        "",
        _growing(run, examples),
        tests,
        morse_messages.ALPHABET,
        morse_messages.LONGEST_TEXT,
        tuple(few_lengths(sizes, 1 if run.quick else 3)),
    )


def digit_folds(run, recordings, log_mel):
    """Leaves one speaker after the other out.

    In every epoch the recordings of the others are joined and changed anew.

    Args:
        run: `speech_settings.Settings`.
        recordings: list of `spoken_digits.Recording`.
        log_mel: `LogMel`.

    Returns:
        List of `Fold`, one for each speaker, or that of `run.speaker`. Tests
        are the recordings of that speaker as they are.

    Raises:
        ValueError: `run.speaker` is none of those who speak, or there is only
            one.
    """
    speakers = sorted({recording.speaker for recording in recordings})
    if run.speaker and run.speaker not in speakers:
        raise ValueError(
            f"SPEAKER must be one of {', '.join(speakers)}. "
            f"Received: SPEAKER={run.speaker}"
        )
    if len(speakers) < 2:
        raise ValueError(
            "DATA must hold at least two speakers, one of whom is left out. "
            f"Received: {', '.join(speakers)}"
        )
    folds = []
    for speaker in [run.speaker] if run.speaker else speakers:
        others = [r for r in recordings if r.speaker != speaker]
        folds.append(
            Fold(
                speaker,
                _drawing(run, others, log_mel),
                [r for r in recordings if r.speaker == speaker],
                spoken_digits.ALPHABET,
                spoken_digits.MOST_JOINED + 1,
                (384,) if run.quick else (96, 192, 384),
            )
        )
    return folds


def _growing(run, examples):
    """Returns what draws examples of an epoch, longer ones in later epochs."""
    ordered = sorted(examples, key=lambda example: len(example[0]))

    def draw(epoch):
        share = min(1.0, _FIRST_SHARE + (1 - _FIRST_SHARE) * epoch / run.ramp)
        generator = np.random.default_rng((run.seed, epoch))
        chosen = generator.integers(int(share * len(ordered)), size=run.sounds)
        return [ordered[number] for number in chosen]

    return draw


def _drawing(run, recordings, log_mel):
    """Returns what draws the numbers of an epoch."""

    def draw(epoch):
        numbers = spoken_digits.draw_numbers(
            recordings, run.sounds, (run.seed, epoch)
        )
        frames = log_mel([number.samples for number in numbers])
        texts = [number.text for number in numbers]
        return list(zip(frames, texts, strict=True))

    return draw
