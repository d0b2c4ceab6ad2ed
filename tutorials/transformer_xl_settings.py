"""What can be set of the tutorial on Transformer-XL."""

import os
import pathlib
from typing import NamedTuple

import program_settings


class Settings(NamedTuple):
    """Holds the settings of one run.

    Args:
        data: str. A text file, plain or `.gz`; empty: passages that a grammar
            writes.
        out: path. Folder of the models and the results.
        quick: bool. A few steps only, to see that everything runs.
        fresh: bool. Start anew, whatever a run that was killed has left.
        seed: int. Seed of the passages, the weights and the samples.
        passages: int. Passages that the grammar writes.
        layers: int. Blocks of each model.
        heads: int. Heads of each block.
        width: int. D, a multiple of `heads`.
        segment: int. T, the characters of a segment, and of GPT's blocks.
        memories: str. Numbers of characters that are remembered, with commas
            between; the last one is that of the longer examples.
        batch: int. Rows of a batch.
        steps: int. Steps of each training.
        rate: float. The highest learning rate.
        dropout: float. On embeddings and on sublayers' outputs.
    """

    data: str = ""
    out: pathlib.Path = pathlib.Path("runs/transformer_xl")
    quick: bool = False
    fresh: bool = False
    seed: int = 1
    passages: int = 6000
    layers: int = 3
    heads: int = 4
    width: int = 96
    segment: int = 32
    memories: str = "0,32,128"
    batch: int = 32
    steps: int = 1000
    rate: float = 4e-3
    dropout: float = 0.0


DATA = {
    "out": pathlib.Path("runs/transformer_xl-data"),
    "layers": 4,
    "width": 128,
    "segment": 64,
    "memories": "0,64,256",
    "batch": 16,
    "steps": 2000,
    "rate": 3e-3,
    "dropout": 0.1,
}
QUICK = {
    "passages": 60,
    "layers": 2,
    "heads": 2,
    "width": 16,
    "segment": 8,
    "memories": "0,16",
    "batch": 4,
    "steps": 4,
}


def read(environment=os.environ):
    """Reads the settings from the environment, where make puts them.

    Args:
        environment: mapping of upper-case names to strings.

    Returns:
        A `Settings`.

    Raises:
        ValueError: a value that is not a positive number where one is needed,
            a width that its heads do not divide, or memories that are none.
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
    memories_of(run)
    return run


def memories_of(run):
    """Returns the memories, in characters.

    Args:
        run: `Settings`.

    Returns:
        List of int.

    Raises:
        ValueError: they are not two or more, or do not rise.
    """
    parts = [part.strip() for part in run.memories.split(",")]
    memories = [int(part) if part.isdecimal() else -1 for part in parts]
    if len(parts) < 2 or min(memories) < 0 or memories != sorted({*memories}):
        raise ValueError(
            "MEMORIES must be two or more numbers of characters that rise, "
            f"with commas between. Received: MEMORIES={run.memories}"
        )
    return memories


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
