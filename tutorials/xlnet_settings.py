"""What can be set of the tutorial on XLNet."""

import os
import pathlib
from typing import NamedTuple

import program_settings
from fine_tuning_settings import numbers

ARMS = "XLNet", "BERT", "from nothing"


class Settings(NamedTuple):
    """Holds the settings of one run.

    Args:
        data: str. Documents to learn from, as for the tutorial on BERT; empty:
            passages and sentences that a grammar writes.
        tune: str. A folder with `clinc150` to fine-tune on; empty: sentences
            of the grammar.
        bert: str. A folder that the tutorial on BERT has written, from the same
            documents; empty: a BERT is pre-trained here.
        out: path. Folder of the model and the results.
        quick: bool. A few steps only, to see that everything runs.
        fresh: bool. Start anew, whatever a run that was killed has left.
        seed: int. Seed of what is drawn.
        passages: int. Passages that the grammar writes, and as many threes of
            sentences.
        pieces: int. Pieces of words, at most.
        layers: int. Blocks of both models.
        heads: int. Heads of each.
        width: int. D of both models, a multiple of twice `heads`.
        context: int. T, the pieces of a pair, the special ones among them.
        batch: int. Pairs of a batch, and sentences in fine-tuning.
        draws: int. How often pairs are drawn from the documents.
        epochs: int. Passes over all of these.
        rate: float. The highest learning rate of the pre-training.
        dropout: float. On embeddings, sublayers' outputs and attention weights.
        arms: str. What is fine-tuned, with commas between: "XLNet", "BERT",
            "from nothing", an XLNet that was not pre-trained.
        examples: int. Sentences of the grammar to fine-tune on.
        share: float. Share of the examples to fine-tune on.
        passes: int. Passes over these.
        rates: str. Learning rates that are tried, with commas between.
        seeds: int. Trainings with the rate that was best.
        length: int. The most pieces of a sentence.
        most: int. The most examples to fine-tune on; 0: all.
    """

    data: str = ""
    tune: str = ""
    bert: str = ""
    out: pathlib.Path = pathlib.Path("runs/xlnet")
    quick: bool = False
    fresh: bool = False
    seed: int = 1
    passages: int = 3000
    pieces: int = 800
    layers: int = 3
    heads: int = 4
    width: int = 128
    context: int = 40
    batch: int = 32
    draws: int = 1
    epochs: int = 6
    rate: float = 2e-3
    dropout: float = 0.0
    arms: str = ",".join(ARMS)
    examples: int = 200
    share: float = 1.0
    passes: int = 20
    rates: str = "1e-3"
    seeds: int = 3
    length: int = 32
    most: int = 0


DATA = {
    "out": pathlib.Path("runs/xlnet-data"),
    "pieces": 8000,
    "layers": 4,
    "epochs": 4,
    "rate": 1e-3,
    "dropout": 0.1,
    "share": 0.1,
    "rates": "3e-4,1e-3,3e-3",
    "seeds": 5,
}
QUICK = {
    "passages": 40,
    "pieces": 200,
    "layers": 1,
    "heads": 2,
    "width": 16,
    "context": 24,
    "batch": 8,
    "epochs": 1,
    "examples": 16,
    "passes": 1,
    "rates": "1e-3",
    "seeds": 1,
}


def read(environment=os.environ):
    """Reads the settings from the environment, where make puts them.

    Args:
        environment: mapping of upper-case names to strings.

    Returns:
        A `Settings`.

    Raises:
        ValueError: a value that is not a positive number where one is needed,
            a width that its heads do not divide, too short a context or
            sentences, or a share above 1.
    """
    run = program_settings.read(
        Settings(),
        DATA,
        QUICK,
        zeros=("dropout", "most"),
        environment=environment,
    )
    if run.width % (2 * run.heads):
        raise ValueError(
            "WIDTH must be a multiple of twice HEADS. "
            f"Received: WIDTH={run.width}, HEADS={run.heads}"
        )
    for name, least in (("context", 8), ("length", 8)):
        if getattr(run, name) < least:
            raise ValueError(
                f"{name.upper()} must be at least {least} pieces. "
                f"Received: {name.upper()}={getattr(run, name)}"
            )
    for name in run.arms.split(","):
        if name not in ARMS:
            raise ValueError(
                f"ARMS must be some of {', '.join(ARMS)}. "
                f"Received: ARMS={run.arms}"
            )
    if run.share > 1:
        raise ValueError(
            f"SHARE must be at most 1. Received: SHARE={run.share}"
        )
    if not all(rate > 0 for rate in numbers(run.rates)):
        raise ValueError(
            "RATES must be positive numbers with commas between. "
            f"Received: RATES={run.rates}"
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
