"""What can be set of the tutorial on masks and positions."""

import os
import pathlib
from typing import NamedTuple

import program_settings


class Settings(NamedTuple):
    """Holds the settings of one run.

    Args:
        out: path. Folder of the results.
        quick: bool. Fewer comparisons, to see that everything runs.
        seed: int. Seed of the weights.
        window: int. Tokens that a windowed query sees on each side, itself
            among them.
        shift: int. By how many tokens all positions are moved at the end.
    """

    out: pathlib.Path = pathlib.Path("runs/masks")
    quick: bool = False
    seed: int = 1
    window: int = 3
    shift: int = 17


def read(environment=os.environ):
    """Reads the settings from the environment, where make puts them.

    Args:
        environment: mapping of upper-case names to strings.

    Returns:
        A `Settings`.

    Raises:
        ValueError: a value that is not a positive number where one is needed,
            or a window or a shift beyond the rows of the learned table.
    """
    run = program_settings.read(Settings(), {}, {}, environment=environment)
    if run.window > 12:
        raise ValueError(
            "WINDOW must be at most 12, the slots of a row. "
            f"Received: WINDOW={run.window}"
        )
    if run.shift > 50:
        raise ValueError(
            "SHIFT must be at most 50: the learned table has 64 rows. "
            f"Received: SHIFT={run.shift}"
        )
    return run
