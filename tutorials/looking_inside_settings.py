"""What can be set of the tutorial on looking inside."""

import os
import pathlib
from typing import NamedTuple

import program_settings


class Settings(NamedTuple):
    """Holds the settings of one run.

    Args:
        out: path. Folder of the pictures and the results.
        quick: bool. A few steps only, to see that everything runs.
        seed: int. Seed of the data, the weights and the masks.
        sentence: str. English words, whose translation is looked into.
        epochs: int. Passes of the translator over its sentences.
        rows: int. Examples of each toy task to train on, 64 at least.
        passes: int. Over the examples of a toy task.
        layers: int. Blocks of the toy tasks' models.
        heads: str. Numbers of heads with a comma between, each dividing 64.
        examples: int. Sentences over which maps are scored.
        masks: int. N of RISE, for each of them.
        looks: int >= 2. T of the glimpse network.
        steps: int. Training steps of the glimpse network.
        canvases: int. Over which its maps are scored.
    """

    out: pathlib.Path = pathlib.Path("runs/looking_inside")
    quick: bool = False
    seed: int = 1
    sentence: str = "the old house is near the river"
    epochs: int = 4
    rows: int = 3200
    passes: int = 10
    layers: int = 2
    heads: str = "1,2,8"
    examples: int = 256
    masks: int = 500
    looks: int = 4
    steps: int = 1600
    canvases: int = 64


QUICK = {
    "epochs": 1,
    "rows": 64,
    "passes": 1,
    "layers": 1,
    "heads": "2",
    "examples": 2,
    "masks": 32,
    "looks": 2,
    "steps": 2,
    "canvases": 2,
}
WIDTH = 64  # D of the small models


def read(environment=os.environ):
    """Reads the settings from the environment, where make puts them.

    Args:
        environment: mapping of upper-case names to strings.

    Returns:
        A `Settings`.

    Raises:
        ValueError: a value that is not a positive number where one is needed,
            heads that do not divide the width, or too few looks or examples.
    """
    run = program_settings.read(Settings(), {}, QUICK, environment=environment)
    heads(run.heads)
    for name, least in (("looks", 2), ("rows", 64), ("examples", 2)):
        if getattr(run, name) < least:
            raise ValueError(
                f"{name.upper()} must be at least {least}. "
                f"Received: {name.upper()}={getattr(run, name)}"
            )
    return run


def heads(text):
    """Returns the numbers of heads in a setting, list of int.

    Args:
        text: str, numbers with a comma between.

    Raises:
        ValueError: something else, or a number that does not divide the width.
    """
    found = [
        int(part) if part.strip().isdigit() else 0 for part in text.split(",")
    ]
    if not all(found) or any(WIDTH % count for count in found):
        raise ValueError(
            f"HEADS must be numbers that divide {WIDTH}, with a comma between. "
            f"Received: HEADS={text}"
        )
    return found


def is_default(run):
    """Returns whether a run learns what one with nothing set learns.

    Args:
        run: `Settings`.

    Returns:
        Bool.
    """
    return program_settings.identity(run, "sentence") == (
        program_settings.identity(Settings(), "sentence")
    )
