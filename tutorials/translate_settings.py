"""What `make translate NAME=value` can set, with what it is by default."""

import os
import pathlib
import sys
from typing import NamedTuple


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
    "epochs": 1,
    "vocabulary": 600,
    "layers": 1,
    "width": 64,
    "buckets": 1,
}


def read_settings(environment=os.environ):
    """Reads the settings from the environment, where make puts them.

    Args:
        environment: mapping of upper-case names to strings.

    Returns:
        A `Settings`.

    Raises:
        ValueError: a value that is not a positive number where one is needed.
    """
    given = {
        name: environment[name.upper()].strip()
        for name in Settings._fields
        if environment.get(name.upper(), "").strip()
    }
    base = Settings()
    if "data" in given:
        base = base._replace(**CORPUS)
    quick, fresh = (
        given.pop(name, "0") not in ("0", "no", "false")
        for name in ("quick", "fresh")
    )
    base = base._replace(quick=quick, fresh=fresh, **(QUICK if quick else {}))
    values = {
        name: _value(name, text, type(getattr(base, name)))
        for name, text in given.items()
    }
    return base._replace(**values)


def identity(run):
    """Returns the settings that a run must share with one it goes on from."""
    free = {"out", "model", "input", "fresh", "epochs", "minutes", "backup"}
    return {
        name: value for name, value in run._asdict().items() if name not in free
    }


def explain_and_leave(error):
    """Prints one line about bad input and leaves with status 2."""
    print(f"translate: {error}", file=sys.stderr)
    sys.exit(2)


def _value(name, text, kind):
    if kind is str or issubclass(kind, pathlib.PurePath):
        return kind(text)
    try:
        value = kind(text)
    except ValueError:
        value = -1
    if value < 0 or (value == 0 and name != "dropout"):
        raise ValueError(
            f"{name.upper()} must be a positive number. "
            f"Received: {name.upper()}={text}"
        )
    return value
