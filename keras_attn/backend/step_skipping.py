"""Steps of a running `fit` that read their batches and train on nothing."""

import itertools

import keras


def skip_steps(model, batches, logs, then):
    """Lets the next steps of a running `fit` pass without training.

    The loop of `fit` counts them and reads their batches as ever, so that the
    steps after them are those of a `fit` that has trained on all.

    Args:
        model: compiled `keras.Model` whose `fit` has begun, before the first
            step of an epoch.
        batches: int >= 1. How many batches to pass over, in whole executions
            of `steps_per_execution`.
        logs: dict of str to float. What these steps report.
        then: function of a batch, called with the last one passed over.

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


def stop_skipping(model):
    """Lets the next steps of a model train again, if they do not already."""
    train = getattr(model.train_function, "skipped", None)
    if train is not None:
        model.train_function = train


def _from_iterator(iterator, count):
    # A StopIteration of the first is the loop's to catch; after it, the epoch
    # ends within this execution.
    batch = next(iterator)
    for other in itertools.islice(iterator, count - 1):
        batch = other
    return batch


# What the loops of the backends hand to a step, and what they want back.
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
