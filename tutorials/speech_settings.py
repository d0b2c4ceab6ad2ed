"""What the program on speech can be told, with what it does by default."""

import os
import pathlib
from typing import NamedTuple

import program_settings


class Settings(NamedTuple):
    """Holds the settings of one run.

    Args:
        data: str. Folder or archive of recordings of spoken digits,
            `<digit>_<speaker>_<number>.wav`; empty: Morse code.
        speaker: str. The one speaker to leave out of the training and to test
            on; empty: each in turn.
        out: path. Folder of the model and the pictures.
        model: path. Folder of a saved model that shall write down sounds;
            empty: train one.
        input: str. Wav file, or folder of them, to be written down; empty: the
            keyboard.
        quick: bool. A few steps only, to see that everything runs.
        fresh: bool. Start anew, whatever a run that was killed has left.
        seed: int. Seed of sounds, weights, shuffling and dropout.
        messages: int. Morse messages that are made, to draw them from.
        ramp: int. Epochs until the longest of these are among those drawn.
        sounds: int. Sounds to learn from in an epoch.
        tests: int. Morse messages to test on.
        longest: float. Seconds of the longest Morse message.
        step: int. Samples from one frame to the next, at 8,000 a second.
        epochs: int. Passes over the sounds.
        minutes: float. A training stops after so many minutes, that of each
            speaker by itself.
        layers: int. Blocks in the encoder.
        decoder: int. Blocks in the decoder.
        width: int. D of the model; heads have 32 features.
        channels: int. Channels of the convolutions.
        batch: int. Sounds in a batch.
        warmup: int. Steps over which the learning rate rises.
        scale: float. Factor on the learning rate.
        ctc: float. Share of the encoder's own spelling in the loss.
        dropout: float.
        smoothing: float. Label smoothing.
        snapshots: int. Snapshots an epoch; the last five are averaged.
        backup: int. Steps from one backup of the training to the next.
    """

    data: str = ""
    speaker: str = ""
    out: pathlib.Path = pathlib.Path("runs/speech")
    model: str = ""
    input: str = ""
    quick: bool = False
    fresh: bool = False
    seed: int = 1
    messages: int = 10_000
    ramp: int = 8
    sounds: int = 2000
    tests: int = 320
    longest: float = 6.0
    step: int = 128
    epochs: int = 28
    minutes: float = 14.0
    layers: int = 2
    decoder: int = 1
    width: int = 128
    channels: int = 32
    batch: int = 16
    warmup: int = 500
    scale: float = 0.4
    ctc: float = 0.3
    dropout: float = 0.05
    smoothing: float = 0.0
    snapshots: int = 1
    backup: int = 200


DIGITS = {
    "out": pathlib.Path("runs/speech-digits"),
    "sounds": 2496,
    "step": 80,
    "epochs": 30,
    "minutes": 9.0,
    "batch": 32,
    "dropout": 0.2,
    "smoothing": 0.1,
}
QUICK = {
    "messages": 32,
    "sounds": 32,
    "tests": 8,
    "longest": 3.0,
    "epochs": 1,
    "layers": 1,
    "width": 32,
    "channels": 4,
    "batch": 8,
}


def read_settings(environment=os.environ):
    """Reads the settings from the environment.

    Args:
        environment: mapping of upper-case names to strings.

    Returns:
        A `Settings`.

    Raises:
        ValueError: a value that is not a positive number where one is needed.
    """
    return program_settings.read(
        Settings(),
        DIGITS,
        QUICK,
        zeros=("ctc", "dropout", "smoothing"),
        environment=environment,
    )
