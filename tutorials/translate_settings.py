"""What `make translate NAME=value` can set, with what it is by default."""

import difflib
import os
import pathlib
import re
from typing import NamedTuple

import program_settings


class Settings(NamedTuple):
    """Holds the settings of one run.

    Args:
        data: str. One tab-separated file, or two parallel files with a comma
            between; empty: the phrase grammar.
        out: path. Folder of the model and the pictures.
        model: path. Folder of a saved model that shall translate; empty:
            train one.
        input: str. File of lines to translate; empty: the keyboard.
        quick: bool. A few steps only, to see that everything runs.
        fresh: bool. Start anew, whatever a run that was killed has left.
        seed: int. Seed of weights, shuffling and dropout.
        epochs: int. Most passes over the training pairs.
        minutes: float. Training stops after so many minutes.
        vocabulary: int. Subwords in the vocabulary.
        layers: int. Blocks in the encoder, and in the decoder.
        width: int. D of the model; heads have 64 features.
        tokens: int. Tokens in a batch, padding included.
        buckets: int. Batch shapes, each compiled once.
        snapshots: int. Snapshots an epoch; the last five are averaged.
        warmup: int. Steps over which the learning rate rises.
        scale: float. Factor on the learning rate.
        dropout: float.
        longest: int. Tokens of the longest pair that is trained on, and of
            the longest translation.
        backup: int. Steps from one backup of the training to the next.
    """

    data: str = ""
    out: pathlib.Path = pathlib.Path("runs/translate")
    model: str = ""
    input: str = ""
    quick: bool = False
    fresh: bool = False
    seed: int = 1
    epochs: int = 10
    minutes: float = 3.8
    vocabulary: int = 1500
    layers: int = 2
    width: int = 128
    tokens: int = 1024
    buckets: int = 2
    snapshots: int = 4
    warmup: int = 400
    scale: float = 0.8
    dropout: float = 0.1
    longest: int = 64
    backup: int = 200


CORPUS = {
    "out": pathlib.Path("runs/translate-corpus"),
    "epochs": 1000,
    "minutes": 60.0,
    "vocabulary": 4000,
    "layers": 3,
    "width": 256,
    "tokens": 2048,
    "buckets": 6,
    "snapshots": 2,
    "warmup": 1000,
    "scale": 1.0,
    "longest": 80,
}
QUICK = {
    "out": pathlib.Path("runs/translate-quick"),
    "epochs": 1,
    "vocabulary": 600,
    "layers": 1,
    "width": 64,
    "buckets": 1,
}


def read_settings(environment=os.environ):
    """Reads the settings from the environment, where make puts them.

    Args:
        environment: mapping of upper-case names to strings. `MAKEFLAGS` in it
            holds what stood on make's command line, settings or not.

    Returns:
        A `Settings`.

    Raises:
        ValueError: a value that is not a positive number where one is needed;
            a name on make's command line that is nearly one of a setting.
    """
    _check_names(environment.get("MAKEFLAGS", ""))
    return program_settings.read(
        Settings(), CORPUS, QUICK, zeros=("dropout",), environment=environment
    )


def identity(run):
    """Returns the settings that a run must share with one it goes on from."""
    return program_settings.identity(run, "epochs", "minutes", "backup")


def is_default(run):
    """Says whether a run has the settings of the page, however long it is."""
    return identity(run) == identity(Settings())


def _check_names(flags):
    known = [name.upper() for name in Settings._fields]
    # Options begin with "-", or are letters without a value; a space that is
    # part of a value has a backslash in front.
    for name in re.findall(r"(?:^|(?<!\\)\s)(\w+)\W?=", flags):
        big = name.upper()
        meant = difflib.get_close_matches(big, known, 1, 0.76) + [
            other
            for other in known
            if len(big) > 2 and (other.startswith(big) or big.startswith(other))
        ]
        if name not in known and meant:
            raise ValueError(
                f"a setting of make translate must be one of "
                f"{', '.join(known)}. Received: {name}; did you mean "
                f"{meant[0]}?"
            )
