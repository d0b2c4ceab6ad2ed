"""What `recurrent.py` can be told by the environment, with its defaults."""

import pathlib
from typing import NamedTuple

import program_settings


class Settings(NamedTuple):
    """Holds the settings of one run.

    Args:
        data: str. One tab-separated file, or two parallel files with a comma
            between; empty: the phrase grammar.
        out: path. Folder of the models, one in each folder below it, and of
            the pictures.
        model: path. Folder of a saved model that shall translate; empty:
            train.
        input: str. File of lines to translate; empty: the keyboard.
        quick: bool. A few steps only, to see that everything runs.
        fresh: bool. Start anew, whatever a run that was killed has left.
        seed: int. Seed of weights, shuffling and dropout.
        arms: str. The models to train, with commas between: `none`,
            `additive`, `general`, `transformer`.
        epochs: int. Most passes of each arm over the training pairs.
        minutes: float. The training of each arm stops after so many minutes.
        vocabulary: int. Subwords in the vocabulary.
        width: int. D of the arm `additive`; the others get the width with
            which they have as many parameters.
        layers: int. Recurrent layers on each side.
        blocks: int. Blocks in the Transformer's encoder, and in its decoder.
        heads: int. Heads of the Transformer.
        tokens: int. Tokens in a batch, padding included.
        buckets: int. Batch shapes, each compiled once.
        snapshots: int. Snapshots an epoch; the last five are averaged.
        warmup: int. Steps over which the learning rate rises.
        rate: float. The largest learning rate, that of the Transformer times
            0.8.
        dropout: float.
        longest: int. Tokens of the longest pair that is trained on, and of
            the longest translation.
        backup: int. Steps from one backup of a training to the next.
        groups: int. Groups of sentences by length.
        sampling: int. Epochs of scheduled sampling; 0: leave that part out.
    """

    data: str = ""
    out: pathlib.Path = pathlib.Path("runs/recurrent")
    model: str = ""
    input: str = ""
    quick: bool = False
    fresh: bool = False
    seed: int = 1
    arms: str = "none,additive,general"
    epochs: int = 3
    minutes: float = 10.0
    vocabulary: int = 1500
    width: int = 128
    layers: int = 1
    blocks: int = 2
    heads: int = 2
    tokens: int = 1024
    buckets: int = 2
    snapshots: int = 10
    warmup: int = 200
    rate: float = 0.004
    dropout: float = 0.1
    longest: int = 64
    backup: int = 200
    groups: int = 6
    sampling: int = 2


CORPUS = {
    "out": pathlib.Path("runs/recurrent-corpus"),
    "arms": "none,additive,general,transformer",
    "epochs": 1000,
    "minutes": 20.0,
    "vocabulary": 4000,
    "width": 192,
    "blocks": 3,
    "heads": 4,
    "tokens": 2048,
    "buckets": 5,
    "warmup": 400,
    "rate": 0.002,
    "longest": 80,
    "sampling": 0,
}
QUICK = {
    "out": pathlib.Path("runs/recurrent-quick"),
    "arms": "additive",
    "epochs": 1,
    "vocabulary": 600,
    "width": 44,
    "blocks": 1,
    "heads": 2,
    "tokens": 1024,
    "buckets": 1,
    "sampling": 0,
}


def read_settings():
    """Reads the settings from the environment.

    Returns:
        A `Settings`.

    Raises:
        ValueError: a value that is not a positive number where one is needed.
    """
    return program_settings.read(
        Settings(), CORPUS, QUICK, zeros=("dropout", "sampling")
    )


def is_default(run):
    """Says whether a run has the settings of the page.

    Where its files go, and how often a backup is written, is the same to it.
    """
    free = {"out": "", "fresh": False, "backup": 0}
    return run._replace(**free) == Settings()._replace(**free)


def identity(run):
    """Returns the settings that a run must share with one it goes on from."""
    return program_settings.identity(
        run, "arms", "epochs", "minutes", "backup", "groups", "sampling"
    )
