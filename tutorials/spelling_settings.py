"""What `spelling.py` can be told by its environment, and its defaults."""

import os
import pathlib
from typing import NamedTuple

import program_settings


class Settings(NamedTuple):
    """Holds the settings of one run.

    Args:
        data: str. Lists of misspellings, `wrong->right` or with a tab, several
            with commas between; empty: words of our own, misspelt by a noise
            model.
        out: path. Folder of the model and the pictures.
        model: path. Folder of a saved model that shall correct; empty: train
            one.
        input: str. File of lines to correct; empty: the keyboard.
        sure: float. A word is replaced where the correction has at least this
            probability.
        quick: bool. A few steps only, to see that everything runs.
        fresh: bool. Start anew, whatever a run that was killed has left.
        seed: int. Seed of weights, noise, shuffling and dropout.
        epochs: int. Most passes over the words.
        minutes: float. Training stops after so many minutes.
        noise: int. How often an epoch holds each right word, misspelt anew.
        unchanged: float. Share of these that are left right.
        layers: int. Blocks in the encoder, and in the decoder.
        width: int. D of the model; heads have 32 features.
        batch: int. Words in a batch.
        buckets: int. Batch shapes, each compiled once.
        snapshots: int. Snapshots an epoch; the last five are averaged.
        warmup: int. Steps over which the learning rate rises.
        scale: float. Factor on the learning rate.
        smoothing: float. Share of the labels' mass that goes to all letters.
        dropout: float.
        beams: int. Hypotheses of the search, and suggestions for a word.
        backup: int. Steps from one backup of the training to the next.
    """

    data: str = ""
    out: pathlib.Path = pathlib.Path("runs/spelling")
    model: str = ""
    input: str = ""
    sure: float = 0.5
    quick: bool = False
    fresh: bool = False
    seed: int = 1
    epochs: int = 100
    minutes: float = 12.0
    noise: int = 2
    unchanged: float = 0.1
    layers: int = 2
    width: int = 128
    batch: int = 64
    buckets: int = 3
    snapshots: int = 4
    warmup: int = 300
    scale: float = 0.6
    smoothing: float = 0.0
    dropout: float = 0.1
    beams: int = 5
    backup: int = 200


CORPUS = {
    "out": pathlib.Path("runs/spelling-corpus"),
    "epochs": 1000,
    "minutes": 35.0,
    "noise": 1,
    "unchanged": 0.2,
    "layers": 3,
    "buckets": 6,
    "snapshots": 2,
    "warmup": 1000,
    "scale": 1.0,
}
QUICK = {
    "epochs": 1,
    "noise": 1,
    "layers": 1,
    "width": 32,
    "batch": 32,
    "buckets": 1,
    "beams": 2,
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
        CORPUS,
        QUICK,
        zeros=("noise", "unchanged", "smoothing", "dropout", "sure"),
        environment=environment,
    )
