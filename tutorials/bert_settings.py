"""What can be set of the tutorial on BERT."""

import os
import pathlib
from typing import NamedTuple

import program_settings


class Settings(NamedTuple):
    """Holds the settings of one run.

    Args:
        data: str. Documents: a treebank (`.conllu`, `.conllu.gz`), or a text of
            a sentence a line with an empty line behind each document; several
            with commas between. Empty: passages that a grammar writes.
        out: path. Folder of the model and the results.
        model: path. Folder of a saved model that shall fill masks; empty:
            train.
        input: str. A file of sentences with [MASK] in them, one a line; empty:
            the keyboard.
        quick: bool. A few steps only, to see that everything runs.
        fresh: bool. Start anew, whatever a run that was killed has left.
        seed: int. Seed of the passages, the weights and the masks.
        passages: int. Passages that the grammar writes.
        pieces: int. Pieces of words, at most.
        layers: int. Blocks of the model.
        heads: int. Heads of each.
        width: int. D of the model, a multiple of twice `heads`.
        rotary: bool. Rotary positions in place of learned ones.
        context: int. T, the pieces of a pair, the special ones among them.
        batch: int. Pairs of a batch.
        draws: int. How often pairs are drawn from the documents.
        epochs: int. Passes over all of these.
        minutes: float. The training ends with the first step past this time.
        rate: float. The highest learning rate.
        dropout: float. On embeddings, sublayers' outputs and attention weights.
    """

    data: str = ""
    out: pathlib.Path = pathlib.Path("runs/bert")
    model: str = ""
    input: str = ""
    quick: bool = False
    fresh: bool = False
    seed: int = 1
    passages: int = 5000
    pieces: int = 800
    layers: int = 3
    heads: int = 4
    width: int = 128
    rotary: bool = True
    context: int = 40
    batch: int = 32
    draws: int = 2
    epochs: int = 7
    minutes: float = 600.0
    rate: float = 2e-3
    dropout: float = 0.0


DATA = {
    "out": pathlib.Path("runs/bert-data"),
    "pieces": 5000,
    "layers": 4,
    "context": 64,
    "draws": 4,
    "epochs": 4,
    "minutes": 60.0,
    "rate": 1e-3,
    "dropout": 0.1,
}
QUICK = {
    "passages": 60,
    "pieces": 200,
    "layers": 1,
    "heads": 2,
    "width": 16,
    "context": 24,
    "batch": 8,
    "draws": 1,
    "epochs": 1,
}


def read(environment=os.environ):
    """Reads the settings from the environment, where make puts them.

    Args:
        environment: mapping of upper-case names to strings.

    Returns:
        A `Settings`.

    Raises:
        ValueError: a value that is not a positive number where one is needed,
            a width that its heads do not divide, or too short a context.
    """
    run = program_settings.read(
        Settings(),
        DATA,
        QUICK,
        zeros=("dropout",),
        environment=environment,
    )
    if run.width % (2 * run.heads):
        raise ValueError(
            "WIDTH must be a multiple of twice HEADS. "
            f"Received: WIDTH={run.width}, HEADS={run.heads}"
        )
    if run.context < 8:
        raise ValueError(
            "CONTEXT must be at least 8 pieces. "
            f"Received: CONTEXT={run.context}"
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
