"""What can be set of the tutorial on captions."""

import os
import pathlib
from typing import NamedTuple

import program_settings


class Settings(NamedTuple):
    """Holds the settings of one run.

    Args:
        data: str. Folder of NLVR, or of pictures and their `captions.tsv`;
            empty: scenes that are painted.
        out: path. Folder of the model and the results.
        model: path. Folder of a saved model that shall describe pictures;
            empty: train.
        input: str. A picture, or a folder of pictures, to describe; empty:
            scenes that are painted.
        quick: bool. A few steps only, to see that everything runs.
        fresh: bool. Start anew, whatever a run that was killed has left.
        seed: int. Seed of the scenes, the weights and the choices.
        scenes: int. Scenes to train on.
        held_out: int. Scenes of each test.
        size: int. Height and width of the scenes, in pixels.
        height: int. Height of the pictures of `data`, in pixels; the width
            is what the first picture's shape makes of it.
        words: int. The most words; rarer ones are left out.
        epochs: int. Passes over the training pictures, words misread.
        settle: int. Passes behind these, with words as they are; 0: none.
        hard: int. Passes with hard attention behind these; 0: none.
        width: int. D of the model.
        channels: int. Channels of the first convolution.
        batch: int. Pictures of a batch.
        rate: float. Learning rate.
        slip: float. Share of the words that are read, not said, which are
            drawn anew in training.
        dropout: float. On embeddings and in front of the output.
    """

    data: str = ""
    out: pathlib.Path = pathlib.Path("runs/captions")
    model: str = ""
    input: str = ""
    quick: bool = False
    fresh: bool = False
    seed: int = 1
    scenes: int = 8000
    held_out: int = 400
    size: int = 40
    height: int = 50
    words: int = 1000
    epochs: int = 10
    settle: int = 3
    hard: int = 2
    width: int = 96
    channels: int = 16
    batch: int = 32
    rate: float = 2e-3
    slip: float = 0.3
    dropout: float = 0.0


DATA = {
    "out": pathlib.Path("runs/captions-data"),
    "epochs": 20,
    "settle": 5,
    "hard": 0,
    "slip": 0.1,
    "dropout": 0.3,
}
QUICK = {
    "scenes": 32,
    "held_out": 8,
    "size": 16,
    "height": 16,
    "epochs": 1,
    "settle": 0,
    "hard": 1,
    "width": 16,
    "channels": 4,
    "batch": 16,
}


def read(environment=os.environ):
    """Reads the settings from the environment, where make puts them.

    Args:
        environment: mapping of upper-case names to strings.

    Returns:
        A `Settings`.

    Raises:
        ValueError: a value that is not a positive number where one is needed,
            shares of 1 or more, or pictures too small to show anything.
    """
    run = program_settings.read(
        Settings(),
        DATA,
        QUICK,
        zeros=("settle", "hard", "slip", "dropout"),
        environment=environment,
    )
    for name in ("slip", "dropout"):
        if getattr(run, name) >= 1:
            raise ValueError(
                f"{name.upper()} must be below 1. "
                f"Received: {name.upper()}={getattr(run, name)}"
            )
    for name in ("size", "height"):
        if getattr(run, name) < 12:
            raise ValueError(
                f"{name.upper()} must be at least 12 pixels. "
                f"Received: {name.upper()}={getattr(run, name)}"
            )
    return run


def is_default(run):
    """Returns whether a run learns what one with nothing set learns.

    Args:
        run: `Settings`.

    Returns:
        Bool.
    """
    return program_settings.identity(run) == program_settings.identity(
        Settings()
    )
