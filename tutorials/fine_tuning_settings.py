"""What can be set of the tutorial on fine-tuning."""

import os
import pathlib
from typing import NamedTuple

import program_settings

TASKS = "sentence", "pair", "span", "tokens"


class Settings(NamedTuple):
    """Holds the settings of one run.

    Args:
        data: str. A folder with `clinc150`, `med`, `restaurant8k` and `wnut17`,
            or some of them; empty: tasks that a grammar writes.
        pretrained: str. A folder that the tutorial on BERT has written; empty:
            a small model is pre-trained here.
        out: path. Folder of the results.
        quick: bool. A few steps only, to see that everything runs.
        seed: int. Seed of what is drawn.
        examples: int. Examples of each task that the grammar writes.
        passages: int. Passages to pre-train on, and as many threes of
            sentences.
        layers: int. Blocks of the model that is pre-trained here.
        width: int. Its D.
        epochs: int. Passes of the pre-training.
        tasks: str. The tasks, with commas between.
        shares: str. Shares of the examples to learn from, with commas between.
        passes: str. Passes over these, a number for each share.
        rates: str. Learning rates that are tried.
        seeds: int. Trainings with the rate that was best.
        length: int. The most pieces of a row.
        batch: int. Rows of a batch.
        most: int. The most examples to learn from; 0: all.
        ways: bool. Whether other ways to fine-tune are compared.
    """

    data: str = ""
    pretrained: str = ""
    out: pathlib.Path = pathlib.Path("runs/fine_tuning")
    quick: bool = False
    seed: int = 1
    examples: int = 200
    passages: int = 3000
    layers: int = 3
    width: int = 128
    epochs: int = 8
    tasks: str = ",".join(TASKS)
    shares: str = "1"
    passes: str = "25"
    rates: str = "1e-3"
    seeds: int = 1
    length: int = 64
    batch: int = 32
    most: int = 0
    ways: bool = True


DATA = {
    "out": pathlib.Path("runs/fine_tuning-data"),
    "rates": "3e-4,1e-3,3e-3",
    "passes": "6",
    "most": 16000,
    "ways": False,
}
QUICK = {
    "examples": 16,
    "passages": 40,
    "layers": 1,
    "width": 16,
    "epochs": 1,
    "tasks": "sentence,span",
    "passes": "1",
    "rates": "1e-3",
    "batch": 16,
    "most": 16,
}


def read(environment=os.environ):
    """Reads the settings from the environment, where make puts them.

    Args:
        environment: mapping of upper-case names to strings.

    Returns:
        A `Settings`.

    Raises:
        ValueError: a value that is not a positive number where one is needed,
            a task that there is not, or not a number of passes a share.
    """
    run = program_settings.read(
        Settings(), DATA, QUICK, zeros=("most",), environment=environment
    )
    for name in run.tasks.split(","):
        if name not in TASKS:
            raise ValueError(
                f"TASKS must be some of {', '.join(TASKS)}. "
                f"Received: TASKS={run.tasks}"
            )
    for name in ("shares", "passes", "rates"):
        if not all(value > 0 for value in numbers(getattr(run, name))):
            raise ValueError(
                f"{name.upper()} must be positive numbers with commas between. "
                f"Received: {name.upper()}={getattr(run, name)}"
            )
    if max(numbers(run.shares)) > 1:
        raise ValueError(
            f"SHARES must be at most 1. Received: SHARES={run.shares}"
        )
    if len(numbers(run.passes)) != len(numbers(run.shares)):
        raise ValueError(
            "PASSES must be a number for each of SHARES. "
            f"Received: PASSES={run.passes}, SHARES={run.shares}"
        )
    if run.length < 16:
        raise ValueError(
            f"LENGTH must be at least 16 pieces. Received: LENGTH={run.length}"
        )
    return run


def numbers(text):
    """Returns numbers that stand with commas between; -1 for what is none."""
    found = []
    for part in text.split(","):
        try:
            found.append(float(part))
        except ValueError:
            found.append(-1.0)
    return found


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
