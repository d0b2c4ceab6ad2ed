"""Says how far a long decoding is."""

import sys
import time

import keras


def progress(verbose, count, batches):
    """Opens a progress bar, where one is wanted.

    Args:
        verbose: `"auto"`: where there are several batches and the output is a
            terminal; 1: always; 0: never.
        count: int. How many sentences there are.
        batches: int. In how many batches they are decoded.

    Returns:
        Callable that takes how many sentences are done.
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
