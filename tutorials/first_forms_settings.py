"""What can be set of the tutorial on the first forms of attention."""

import os
import pathlib
from typing import NamedTuple

import program_settings


class Settings(NamedTuple):
    """Holds the settings of one run.

    Args:
        data: str. One tab-separated file of sentences and translations, or
            two parallel files with a comma between; empty: lists of things,
            in English and Spanish.
        out: path. Folder of the models and the results.
        model: path. Folder of a saved model that shall translate; empty:
            train.
        input: str. File of lines to translate; empty: the keyboard.
        quick: bool. A few steps only, to see that everything runs.
        fresh: bool. Start anew, whatever a run that was killed has left.
        seed: int. Seed of the data, the weights and the choices.
        pairs: int. Pairs to train on.
        held_out: int. Pairs to test on, never trained on.
        epochs: int. Passes over the training pairs, of each model.
        width: int. D of the models.
        words: int. The most words of each language.
        longest: int >= 3. The most words of a sentence that is trained on.
        rate: float. Learning rate.
    """

    data: str = ""
    out: pathlib.Path = pathlib.Path("runs/first_forms")
    model: str = ""
    input: str = ""
    quick: bool = False
    fresh: bool = False
    seed: int = 1
    pairs: int = 6400
    held_out: int = 576
    epochs: int = 6
    width: int = 64
    words: int = 10_000
    longest: int = 19
    rate: float = 4e-3


CORPUS = {
    "out": pathlib.Path("runs/first_forms-corpus"),
    "pairs": 32_000,
    "epochs": 12,
    "width": 128,
    "words": 4000,
    "longest": 12,
    "rate": 2e-3,
}
QUICK = {"pairs": 64, "held_out": 16, "epochs": 1, "width": 16}


def read(environment=os.environ):
    """Reads the settings from the environment, where make puts them.

    Args:
        environment: mapping of upper-case names to strings.

    Returns:
        A `Settings`.

    Raises:
        ValueError: a value that is not a positive number where one is needed,
            or sentences without room for three words.
    """
    run = program_settings.read(
        Settings(), CORPUS, QUICK, environment=environment
    )
    if run.longest < 3:
        raise ValueError(
            "LONGEST must be at least 3, the words of a thing. "
            f"Received: LONGEST={run.longest}"
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
