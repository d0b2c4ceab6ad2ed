"""What each character of a text costs a language model."""

import keras
import numpy as np


def character_losses(model, ids, context, batch_size=64):
    """Returns the loss of every character of a text, read in blocks.

    Blocks lie end to end, so that a character at the beginning of a block has
    little before it.

    Args:
        model: `GPT`.
        ids: int (N,), the text.
        context: int. T, the characters of a block.
        batch_size: int. Blocks that are read together.

    Returns:
        Float (N - 1,), nats: of all characters but the first. The place of
        character i + 1 in its block is i modulo T.
    """
    ids = np.asarray(ids, "int32")
    count = len(ids) - 1
    blocks = -(-count // context)
    padded = np.zeros(blocks * context + 1, "int32")
    padded[: len(ids)] = ids
    inputs = padded[:-1].reshape(blocks, context)
    labels = padded[1:].reshape(blocks, context)
    return _losses(model, inputs, labels, batch_size).reshape(-1)[:count]


def overlapping_losses(model, ids, context, batch_size=64):
    """Returns the loss of characters that have half a block at least before.

    Args:
        model: `GPT`.
        ids: int (N,), the text, longer than a block.
        context: int. T, even.
        batch_size: int. Blocks that are read together.

    Returns:
        Float (M,), nats, of characters from T/2 + 1 on, each once.
    """
    ids = np.asarray(ids, "int32")
    half = context // 2
    starts = np.arange(0, len(ids) - context, half)
    places = starts[:, None] + np.arange(context)
    rows = _losses(model, ids[places], ids[places + 1], batch_size)
    return rows[:, context - half :].reshape(-1)


def _losses(model, inputs, labels, batch_size):
    found = []
    for start in range(0, len(inputs), batch_size):
        rows = slice(start, start + batch_size)
        logits = model.predict_on_batch(inputs[rows])
        logs = keras.ops.convert_to_numpy(keras.ops.log_softmax(logits))
        found.append(
            -np.take_along_axis(logs, labels[rows][..., None], -1)[..., 0]
        )
    return np.concatenate(found)
