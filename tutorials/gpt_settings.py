"""What can be set of the tutorial on GPT."""

import os
import pathlib
from typing import NamedTuple

import program_settings


class Settings(NamedTuple):
    """Holds the settings of one run.

    Args:
        data: str. A text file, plain or `.gz`; empty: passages that a grammar
            writes.
        out: path. Folder of the model and the results.
        model: path. Folder of a saved model that shall go on with texts;
            empty: train.
        input: str. A file with texts to go on with, one a line; empty: the
            keyboard.
        quick: bool. A few steps only, to see that everything runs.
        fresh: bool. Start anew, whatever a run that was killed has left.
        seed: int. Seed of the passages, the weights and the samples.
        passages: int. Passages that the grammar writes.
        layers: int. Blocks of the model.
        heads: int. Heads of each.
        width: int. D of the model, a multiple of `heads`.
        rotary: bool. Rotary positions in place of learned ones.
        context: int. T, the characters of a block.
        batch: int. Blocks of a batch.
        steps: int. Steps of the training.
        minutes: float. The training ends with the first step past this time.
        rate: float. The highest learning rate.
        dropout: float. On embeddings and on sublayers' outputs.
        samples: int. Samples of which shares are counted.
    """

    data: str = ""
    out: pathlib.Path = pathlib.Path("runs/gpt")
    model: str = ""
    input: str = ""
    quick: bool = False
    fresh: bool = False
    seed: int = 1
    passages: int = 6000
    layers: int = 4
    heads: int = 4
    width: int = 128
    rotary: bool = True
    context: int = 128
    batch: int = 16
    steps: int = 1300
    minutes: float = 600.0
    rate: float = 4e-3
    dropout: float = 0.0
    samples: int = 32


DATA = {
    "out": pathlib.Path("runs/gpt-data"),
    "width": 160,
    "context": 256,
    "batch": 8,
    "steps": 5000,
    "minutes": 45.0,
    "rate": 3e-3,
    "dropout": 0.1,
}
QUICK = {
    "passages": 60,
    "layers": 1,
    "heads": 2,
    "width": 16,
    "context": 16,
    "batch": 4,
    "steps": 6,
    "samples": 2,
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
            "CONTEXT must be at least 8 characters. "
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
