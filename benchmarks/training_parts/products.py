"""The matrix products of a training step alone, in sequence."""

import keras
import numpy as np
from keras import ops

from benchmarks.training_step import task


def shapes(case):
    """Lists the products of a step.

    Args:
        case: dict of sizes.

    Returns:
        List of (times, batch, n, k, m): the number of products of (batch, n, k)
        and (batch, k, m) in the forward pass. The backward pass has a product
        of (n, m) and (m, k), and one of (k, n) and (n, m), for each.
    """
    rows, length, width = case["rows"], case["length"], case["width"]
    count, heads = task.tokens(case), case["heads"]
    layers, head = case["layers"], width // heads
    return [
        (12 * layers, 1, count, width, width),
        (2 * layers, 1, count, width, case["inner"]),
        (2 * layers, 1, count, case["inner"], width),
        (3 * layers, rows * heads, length, head, length),
        (3 * layers, rows * heads, length, length, head),
        (1, 1, count, width, case["vocabulary"]),
    ]


def prepare(case):
    """Returns a callable that runs the products of a number of steps."""
    rng = np.random.default_rng(0)

    def draw(*shape):
        return ops.convert_to_tensor(rng.normal(size=shape).astype("float32"))

    operands = [
        (draw(b, n, k), draw(b, k, m), draw(b, n, m))
        for _, b, n, k, m in shapes(case)
    ]

    def three(left, right, grad):
        return (
            ops.matmul(left, right),
            ops.matmul(grad, ops.transpose(right, (0, 2, 1))),
            ops.matmul(ops.transpose(left, (0, 2, 1)), grad),
        )

    programs = [_compiled(three) for _ in operands]

    def run(steps):
        for _ in range(steps):
            for program, tensors, (times, *_) in zip(
                programs, operands, shapes(case), strict=True
            ):
                for _ in range(times):
                    last = program(*tensors)
        keras.ops.convert_to_numpy(last[0])
        return 0.0

    return run


def _compiled(function):
    backend = keras.backend.backend()
    if backend == "jax":
        import jax

        return jax.jit(function)
    if backend == "tensorflow":
        import tensorflow as tf

        return tf.function(function)
    return function
