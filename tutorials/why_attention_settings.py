"""What can be set of the tutorial that measures what attention is good for."""

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
        rounds: int. How often each time is measured.
        longest: int. Tokens of the longest sequence that is timed.
        blocks: int. Of 20 training steps each, of every model that learns.
        rows: int. Rows that recall is tested on.
    """

    out: pathlib.Path = pathlib.Path("runs/why_attention")
    quick: bool = False
    seed: int = 1
    rounds: int = 5
    longest: int = 2048
    blocks: int = 16
    rows: int = 4096


QUICK = {"rounds": 1, "longest": 16, "blocks": 1, "rows": 64}


def read(environment=os.environ):
    """Reads the settings from the environment, where make puts them.

    Args:
        environment: mapping of upper-case names to strings.

    Returns:
        A `Settings`.

    Raises:
        ValueError: a value that is not a positive number where one is needed.
    """
    return program_settings.read(Settings(), {}, QUICK, environment=environment)


def is_default(run):
    """Returns whether a run learns what one with nothing set learns.

    Args:
        run: `Settings`.

    Returns:
        Bool.
    """
    base = Settings()
    return all(
        getattr(run, name) == getattr(base, name)
        for name in ("quick", "seed", "blocks", "rows")
    )
