"""What can be set of the tutorial that writes multi-head attention down."""

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
        steps: int. Training steps of each model that looks at two places.
        width: int. D of these models, a multiple of 4.
        rounds: int. How often each time is measured.
        longest: int. Tokens of the longest sequence that is timed.
    """

    out: pathlib.Path = pathlib.Path("runs/multi_head")
    quick: bool = False
    seed: int = 1
    steps: int = 600
    width: int = 32
    rounds: int = 5
    longest: int = 2048


QUICK = {"steps": 2, "width": 8, "rounds": 1, "longest": 64}


def read(environment=os.environ):
    """Reads the settings from the environment, where make puts them.

    Args:
        environment: mapping of upper-case names to strings.

    Returns:
        A `Settings`.

    Raises:
        ValueError: a value that is not a positive number where one is needed,
            or a width that four heads do not divide.
    """
    run = program_settings.read(Settings(), {}, QUICK, environment=environment)
    if run.width % 4:
        raise ValueError(
            "WIDTH must be a multiple of 4, the most heads that share it. "
            f"Received: WIDTH={run.width}"
        )
    return run


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
        for name in ("quick", "seed", "steps", "width")
    )
