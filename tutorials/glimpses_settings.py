"""What can be set of the tutorial on recurrent glimpses."""

import os
import pathlib
from typing import NamedTuple

import program_settings


class Settings(NamedTuple):
    """Holds the settings of one run.

    Args:
        data: str. An .npz file with `images`, (N, h, w), small grey pictures,
            and `labels`, (N,), whole numbers from 0; empty: the digits of
            scikit-learn.
        out: path. Folder of the model, the pictures and the results.
        model: path. Folder of a saved model that shall look; empty: train.
        input: str. A .npy or .png file of pictures to look at.
        quick: bool. A few steps only, to see that everything runs.
        fresh: bool. Start anew, whatever a run that was killed has left.
        seed: int. Seed of the data, the weights and the places.
        side: int >= 32. Pixels of a canvas, each way.
        pieces: int. Pieces of other digits on a canvas; 0: none.
        glimpses: int >= 2. T, looks at each picture.
        patch: int >= 4. g, numbers of a patch, each way.
        patches: int. k, patches of a look.
        width: int >= 4. D, of what is known of a picture.
        deviation: float. Of the places in training; 1 is half a canvas.
        batch: int. Canvases of a training step.
        steps: int. Training steps of an epoch.
        epochs: int. Epochs of each network, with new canvases in each.
        rate: float. Learning rate at the beginning.
        weight: float. Of REINFORCE in the loss.
        copies: int. Canvases of each digit in validation and test.
    """

    data: str = ""
    out: pathlib.Path = pathlib.Path("runs/glimpses")
    model: str = ""
    input: str = ""
    quick: bool = False
    fresh: bool = False
    seed: int = 1
    side: int = 48
    pieces: int = 4
    glimpses: int = 5
    patch: int = 10
    patches: int = 3
    width: int = 128
    deviation: float = 0.12
    batch: int = 128
    steps: int = 100
    epochs: int = 50
    rate: float = 0.002
    weight: float = 0.4
    copies: int = 5


CORPUS = {"out": pathlib.Path("runs/glimpses-own")}
QUICK = {
    "glimpses": 2,
    "width": 16,
    "batch": 16,
    "steps": 2,
    "epochs": 1,
    "copies": 1,
}


def read(environment=os.environ):
    """Reads the settings from the environment, where make puts them.

    Args:
        environment: mapping of upper-case names to strings.

    Returns:
        A `Settings`.

    Raises:
        ValueError: a value that is not a positive number where one is needed,
            a canvas that is too small, or too few looks.
    """
    run = program_settings.read(
        Settings(), CORPUS, QUICK, zeros=("pieces",), environment=environment
    )
    for name, least in (
        ("side", 32),
        ("glimpses", 2),
        ("patch", 4),
        ("width", 4),
    ):
        if getattr(run, name) < least:
            raise ValueError(
                f"{name.upper()} must be at least {least}. "
                f"Received: {name.upper()}={getattr(run, name)}"
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
