"""Progress bar of decoding."""

import sys
import time
from collections.abc import Callable
from typing import Any

import keras


def progress(
    verbose: int | str, count: int, batches: int
) -> Callable[..., Any]:
    """Starts a progress bar if requested.

    Args:
        verbose: `"auto"`: if there are several batches and the output is a
            terminal; 1: always; 0: never.
        count: int. Number of sentences.
        batches: int. Number of batches.

    Returns:
        Callable that takes the number of sentences done so far.
    """
    if verbose == "auto":
        terminal = getattr(sys.stdout, "isatty", bool)()
        verbose = terminal and batches > 1
    if not verbose:
        return lambda done: None
    bar = keras.utils.Progbar(
        count, unit_name="sentence", stateful_metrics=["sentences/s"]
    )
    started = time.monotonic()

    def show(done):
        rate = done / max(time.monotonic() - started, 1e-9)
        bar.update(done, [("sentences/s", rate)])

    return show
