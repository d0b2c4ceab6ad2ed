"""What `tagging.py` can be told by the environment, with its defaults."""

import pathlib
from typing import NamedTuple

import program_settings


class Settings(NamedTuple):
    """Holds the settings of one run.

    Args:
        data: str. CoNLL-U files to train on and to test on, with a comma
            between; empty: sentences of the phrase grammar.
        out: path. Folder of the model and the pictures.
        model: path. Folder of a saved model that shall tag; empty: train one.
        input: str. File to tag: sentences, one a line, words apart by spaces,
            or a treebank (`.conllu`, `.conllu.gz`), whose tags are compared;
            empty: the keyboard.
        quick: bool. A few steps only, to see that everything runs.
        fresh: bool. Start anew, whatever a run that was killed has left.
        seed: int. Seed of weights, order and dropout.
        epochs: int. Passes over the training sentences.
        layers: int. Blocks of the encoder.
        width: int. D of the model; heads have 32 features.
        rows: int. Sentences in a batch.
        buckets: int. Batch shapes, each compiled once.
        rate: float. The largest learning rate.
        dropout: float.
        unknown: float. Probability that a word is unknown in training.
        word: str. The word whose vectors are compared; empty: the one that is
            divided most evenly between two tags.
    """

    data: str = ""
    out: pathlib.Path = pathlib.Path("runs/tagging")
    model: str = ""
    input: str = ""
    quick: bool = False
    fresh: bool = False
    seed: int = 1
    epochs: int = 4
    layers: int = 2
    width: int = 64
    rows: int = 32
    buckets: int = 2
    rate: float = 0.002
    dropout: float = 0.1
    unknown: float = 0.2
    word: str = "open"


CORPUS = {
    "out": pathlib.Path("runs/tagging-corpus"),
    "epochs": 16,
    "width": 128,
    "buckets": 5,
    "dropout": 0.25,
    "word": "",
}
QUICK = {"epochs": 1, "layers": 1, "width": 32, "buckets": 1}


def read_settings():
    """Reads the settings from the environment."""
    return program_settings.read(
        Settings(), CORPUS, QUICK, zeros=("dropout", "unknown")
    )
