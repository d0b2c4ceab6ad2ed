"""What can be set of the tutorial on encoder and decoder, block by block."""

import os
import pathlib
from typing import NamedTuple

import program_settings


class Settings(NamedTuple):
    """Holds the settings of one run.

    Args:
        out: path. Folder of the results.
        quick: bool. A few steps only, to see that everything runs.
        seed: int. Seed of the data and the weights.
        depth: int. Blocks of the stacks whose gradients are measured.
        layers: int. Blocks of encoder and decoder in the models that learn.
        heads: int. Heads of each block.
        width: int. D, an even multiple of `heads`.
        digits: int >= 2. The most digits of a row.
        steps: int. Training steps of each model.
        warmup: int. Steps until the learning rate is at its peak.
        rate: float. The highest learning rate.
    """

    out: pathlib.Path = pathlib.Path("runs/blocks")
    quick: bool = False
    seed: int = 1
    depth: int = 24
    layers: int = 4
    heads: int = 4
    width: int = 32
    digits: int = 6
    steps: int = 300
    warmup: int = 100
    rate: float = 8e-3


QUICK = {
    "depth": 2,
    "layers": 1,
    "heads": 2,
    "width": 8,
    "digits": 3,
    "steps": 2,
    "warmup": 1,
}


def read(environment=os.environ):
    """Reads the settings from the environment, where make puts them.

    Args:
        environment: mapping of upper-case names to strings.

    Returns:
        A `Settings`.

    Raises:
        ValueError: a value that is not a positive number where one is needed,
            a width that is odd or that its heads do not divide, or rows
            without room for two digits.
    """
    run = program_settings.read(Settings(), {}, QUICK, environment=environment)
    if run.width % run.heads or run.width % 2:
        raise ValueError(
            "WIDTH must be an even multiple of HEADS. "
            f"Received: WIDTH={run.width}, HEADS={run.heads}"
        )
    if run.digits < 2:
        raise ValueError(
            f"DIGITS must be at least 2. Received: DIGITS={run.digits}"
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
