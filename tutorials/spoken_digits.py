"""Recordings of spoken digits: one at a time, and joined to numbers."""

import re
from typing import Any, NamedTuple

import numpy as np
import sound_changes
import sound_files

ALPHABET = "0123456789"
RATE = 8000  # samples a second
_NAME = re.compile(r"(\d)_(.+)_(\d+)")
MOST_JOINED = 3


class Recording(NamedTuple):
    """Holds what someone said.

    Args:
        samples: float32 (n,), in [-1, 1], at `RATE`.
        text: str of digits.
        spans: float (digits, 2). When each is spoken, from the beginning to the
            end, in seconds.
        speaker: str.
    """

    samples: Any
    text: str
    spans: Any
    speaker: str


def read_digits(path):
    """Reads recordings of single digits.

    Args:
        path: path of a folder or an archive, as for `sound_files.read_sounds`,
            with files `<digit>_<speaker>_<number>.wav`, as in the Free Spoken
            Digit Dataset.

    Returns:
        List of `Recording`.

    Raises:
        SoundError: a file that cannot be read, or has another name.
    """
    recordings = []
    for name, samples in sound_files.read_sounds(path, RATE).items():
        match = _NAME.fullmatch(name)
        if not match:
            raise sound_files.SoundError(
                f"{path} must hold files named <digit>_<speaker>_<number>.wav. "
                f"Found: {name}.wav."
            )
        recordings.append(whole(samples, match[1], match[2]))
    return recordings


def whole(samples, text, speaker):
    """Returns the `Recording` of one digit, from its first to its last sample.

    Args:
        samples: float32 (n,).
        text: str, the digit.
        speaker: str.
    """
    spans = np.array([[0.0, len(samples) / RATE]])
    return Recording(samples, text, spans, speaker)


def joined(recordings, pauses):
    """Joins recordings to one, equally loud, with pauses between them.

    Args:
        recordings: list of `Recording`.
        pauses: list of int, one more than recordings: samples of silence in
            front, between them, and behind.

    Returns:
        A `Recording`, its speaker the first one's.

    Raises:
        ValueError: another number of pauses.
    """
    if len(pauses) != len(recordings) + 1:
        raise ValueError(
            "`pauses` must be one more than `recordings`. "
            f"Received: {len(pauses)} for {len(recordings)}"
        )
    parts, spans, text = [np.zeros(pauses[0])], [], ""
    for recording, pause in zip(recordings, pauses[1:], strict=True):
        start = sum(map(len, parts)) / RATE
        loudest = np.abs(recording.samples).max() or 1.0
        parts += [recording.samples / (2 * loudest), np.zeros(pause)]
        spans.append(recording.spans + start)
        text += recording.text
    samples = np.concatenate(parts).astype("float32")
    first = recordings[0].speaker
    return Recording(samples, text, np.concatenate(spans), first)


def draw_numbers(recordings, count, seed, change=True):
    """Joins one to three recordings of a speaker to numbers, and changes them.

    Each recording is used about as often as any other.

    Args:
        recordings: list of `Recording`, of single digits.
        count: int. Numbers to make.
        seed: int, or a tuple of them.
        change: bool. Whether speed, timbre and noise are changed at random;
            see `sound_changes`.

    Returns:
        List of `Recording`.
    """
    generator = np.random.default_rng(seed)
    by_speaker = {}
    for recording in recordings:
        by_speaker.setdefault(recording.speaker, []).append(recording)
    waiting = {speaker: [] for speaker in by_speaker}
    speakers = sorted(by_speaker)
    numbers = []
    for _ in range(count):
        speaker = speakers[generator.integers(len(speakers))]
        own, queue = by_speaker[speaker], waiting[speaker]
        chosen = []
        for _ in range(generator.integers(1, MOST_JOINED + 1)):
            if not queue:
                queue += generator.permutation(len(own)).tolist()
            chosen.append(own[queue.pop()])
        if change:
            chosen = _changed(chosen, generator)
        pauses = generator.integers(0, RATE // 5, len(chosen) + 1)
        number = joined(chosen, pauses.tolist())
        if change:
            noisy = sound_changes.add_noise(
                number.samples, generator.uniform(5, 40), generator
            )
            number = number._replace(samples=noisy)
        numbers.append(number)
    return numbers


def _changed(recordings, generator):
    """Returns recordings as another voice and microphone would have them."""
    speed = np.exp(generator.uniform(-0.25, 0.25))
    tilt = generator.uniform(-0.6, 0.6)
    changed = []
    for recording in recordings:
        # The tempo of each word varies a little beside the voice's.
        factor = speed * np.exp(generator.uniform(-0.05, 0.05))
        samples = sound_changes.change_speed(recording.samples, factor)
        samples = sound_changes.tilt(samples, tilt)
        changed.append(whole(samples, recording.text, recording.speaker))
    return changed
