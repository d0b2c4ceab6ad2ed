"""What a loss at the top says to each block of a stack, on any backend."""

from typing import NamedTuple

import input_gradients
import keras
import numpy as np


class Depths(NamedTuple):
    """What was measured of a stack of L blocks.

    Args:
        gradients: float (L + 1,). Norm of the gradient at what comes into each
            block, and at the output, for a token.
        alike: float (L + 1,). Mean cosine of two different tokens of a row, at
            the same places.
        kept: float (L + 1,). Mean cosine of a token there and at the bottom.
        sizes: float (L + 1,). Root mean square of the features there.
    """

    gradients: np.ndarray
    alike: np.ndarray
    kept: np.ndarray
    sizes: np.ndarray


def measure(blocks, inputs, direction):
    """Asks the output for something, and sees what each block is told.

    One step of plain gradient descent with a rate of 1 moves each weight by
    minus its gradient. In front of each block stands a weight that is added to
    what comes in, zero before the step. Nothing else is trained: on TensorFlow
    a gradient may be passed on through weights that the step has moved already.

    Args:
        blocks: list of L layers from (B, T, D) to (B, T, D). Their weights
            stay as they are.
        inputs: float (B, T, D).
        direction: float (B, T, D). The loss is the sum of the output times
            this.

    Returns:
        `Depths`.
    """
    inputs = np.asarray(inputs, "float32")
    source = keras.Input(batch_shape=inputs.shape)
    offsets = [input_gradients.Offset() for _ in range(len(blocks) + 1)]
    x, streams = source, []
    for offset, block in zip(offsets, [*blocks, None], strict=True):
        x = offset(x)
        streams.append(x)
        x = x if block is None else block(x)
    looks = keras.Model(source, streams).predict_on_batch(inputs)
    trained = [block.trainable for block in blocks]
    for block in blocks:
        block.trainable = False
    model = keras.Model(source, x)
    model.compile(keras.optimizers.SGD(1.0), input_gradients.Projection())
    model.train_on_batch(inputs, np.asarray(direction, "float32"))
    for block, trainable in zip(blocks, trained, strict=True):
        block.trainable = trainable
    found = [keras.ops.convert_to_numpy(x.offset) for x in offsets]
    return Depths(
        np.array([np.linalg.norm(x, axis=-1).mean() for x in found]),
        np.array([_alike(look) for look in looks]),
        np.array(
            [(_unit(look) * _unit(looks[0])).sum(-1).mean() for look in looks]
        ),
        np.array([np.sqrt((look**2).mean()) for look in looks]),
    )


def _unit(x):
    return x / np.linalg.norm(x, axis=-1, keepdims=True)


def _alike(x):
    cosines = _unit(x) @ _unit(x).swapaxes(1, 2)
    length = x.shape[1]
    return (cosines.sum((1, 2)) - length).mean() / (length * (length - 1))
