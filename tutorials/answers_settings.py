"""What `NAME=value` can set of the tutorial on answers."""

import os
import pathlib
from typing import NamedTuple

import program_settings

TASKS = "answer", "repair"


class Settings(NamedTuple):
    """Holds the settings of one run.

    Args:
        task: str. "answer", or "repair": the second half alone.
        data: str. Two JSON files with a comma between, to learn from and to
            test on: RESTAURANTS-8K, or, with TASK=repair, Disfl-QA; empty:
            the phrase grammar.
        out: path. Folder of the models and the results.
        model: str. Folder of a saved model that shall answer, or repair;
            empty: train one.
        input: str. File of lines for it; empty: the keyboard.
        quick: bool. A few steps only, to see that everything runs.
        fresh: bool. Start anew, whatever a run that was killed has left.
        seed: int. Seed of data, weights, shuffling and dropout.
        questions: int. Questions to learn from, where a grammar writes them.
        epochs: int. Passes over the questions.
        layers: int. Blocks of the encoder.
        width: int. D; heads have 32 features.
        batch: int. Questions in a batch.
        buckets: int. Lengths of batches, each compiled once.
        warmup: int. Steps over which the learning rate rises.
        scale: float. Factor on the learning rate.
        dropout: float.
        unknown: float. How often a word loses its id as it is trained on.
        least: int. How often a word must occur to have an id.
        characters: bool. Whether words come with their characters.
        backup: int. Steps from one backup of the training to the next.
        repair_epochs: int. Passes over the pairs of the second half.
        repair_width: int. D of its Transformer.
        repair_words: int. Words with an id of their own there; the others
            are copied.
    """

    task: str = "answer"
    data: str = ""
    out: pathlib.Path = pathlib.Path("runs/answers")
    model: str = ""
    input: str = ""
    quick: bool = False
    fresh: bool = False
    seed: int = 1
    questions: int = 12_000
    epochs: int = 9
    layers: int = 3
    width: int = 96
    batch: int = 32
    buckets: int = 3
    warmup: int = 300
    scale: float = 0.35
    dropout: float = 0.05
    unknown: float = 0.0
    least: int = 1
    characters: bool = False
    backup: int = 200
    repair_epochs: int = 8
    repair_width: int = 96
    repair_words: int = 60


CORPUS = {
    "out": pathlib.Path("runs/answers-corpus"),
    "epochs": 8,
    "dropout": 0.2,
    "unknown": 0.1,
    "least": 3,
    "characters": True,
    "repair_epochs": 30,
    "repair_width": 128,
    "repair_words": 600,
}
QUICK = {
    "questions": 96,
    "epochs": 1,
    "layers": 1,
    "width": 32,
    "batch": 32,
    "buckets": 1,
    "characters": False,
    "repair_epochs": 1,
    "repair_width": 32,
}


def read(environment=os.environ):
    """Reads the settings from the environment.

    Args:
        environment: mapping of upper-case names to strings.

    Returns:
        `Settings`.

    Raises:
        ValueError: a value that is not a positive number where one is needed,
            or no such task.
    """
    run = program_settings.read(
        Settings(),
        CORPUS,
        QUICK,
        zeros=("dropout", "unknown"),
        environment=environment,
    )
    if run.task not in TASKS:
        raise ValueError(
            f"TASK must be one of {', '.join(TASKS)}. Received: TASK={run.task}"
        )
    if run.data and len(files(run.data)) != 2:
        raise ValueError(
            "DATA must be two files with a comma between. "
            f"Received: DATA={run.data}"
        )
    if not 0 <= run.dropout < 1 or not 0 <= run.unknown < 1:
        raise ValueError(
            "DROPOUT and UNKNOWN must lie in [0, 1). "
            f"Received: DROPOUT={run.dropout}, UNKNOWN={run.unknown}"
        )
    return run


def files(data):
    """Returns the paths in a str with commas between them.

    Examples:
    >>> files("train.json, test.json")
    ['train.json', 'test.json']
    """
    return [name.strip() for name in data.split(",") if name.strip()]
