"""Skips training steps of a running `fit`, still reading their batches."""

import itertools
from collections.abc import Callable
from typing import Any

import keras


def skip_steps(
    model: keras.Model,
    batches: int,
    logs: dict[str, float],
    then: Callable[..., Any],
) -> None:
    """Skips the next training steps of a running `fit`.

    `fit` still counts them and reads their batches, so that later steps are the
    same as in a `fit` that trained on all batches.

    Args:
        model: compiled `keras.Model` whose `fit` has begun, before the first
            step of an epoch.
        batches: int >= 1. Number of batches to skip, rounded up to whole
            executions of `steps_per_execution`.
        logs: dict of str to float. Logs that the skipped steps return.
        then: function of a batch, called with the last skipped batch.
    """
    train = model.train_function
    read = _READERS[keras.backend.backend()]
    left = -(-batches // model.steps_per_execution)

    def skip(*arguments):
        nonlocal left
        batch, answer = read(arguments, model.steps_per_execution, dict(logs))
        left -= 1
        if not left:
            stop_skipping(model)
            then(batch)
        return answer

    skip.skipped = train
    model.train_function = skip


def stop_skipping(model: keras.Model) -> None:
    """Resumes training, if the steps of a model are being skipped."""
    train = getattr(model.train_function, "skipped", None)
    if train is not None:
        model.train_function = train


def _from_iterator(iterator, count):
    # StopIteration from the first `next` is caught by the loop of `fit`
    # (as of Keras 3.15.1); later ones mean that the epoch ends within this
    # execution.
    batch = next(iterator)
    for other in itertools.islice(iterator, count - 1):
        batch = other
    return batch


# Arguments and results of the train function, per backend. They are not
# documented, but `fit` cannot skip steps, as of Keras 3.15.1.
_READERS = {
    "jax": lambda arguments, count, logs: (
        _from_iterator(arguments[1], count),
        (logs, arguments[0]),
    ),
    "tensorflow": lambda arguments, count, logs: (
        _from_iterator(arguments[0], count),
        logs,
    ),
    "torch": lambda arguments, count, logs: (arguments[0][-1], logs),
}
