"""Three projections of one tensor, in one matrix product or in three."""

import numpy as np
from keras import ops

from benchmarks.attention.task import runner


def prepare(case, together):
    """Returns a callable that runs steps."""
    rng = np.random.default_rng(0)
    width = case["width"]
    shapes = [(case["tokens"], width), *[(width, width)] * 3, *[(width,)] * 3]
    arrays = [rng.normal(size=shape).astype("float32") for shape in shapes]

    def function(x, *weights):
        matrices, biases = weights[:3], weights[3:]
        if together:
            matrix = ops.concatenate(matrices, axis=1)
            y = ops.matmul(x, matrix) + ops.concatenate(biases)
            parts = ops.split(y, 3, axis=1)
        else:
            parts = [
                ops.matmul(x, matrix) + bias
                for matrix, bias in zip(matrices, biases, strict=True)
            ]
        # Each projection is used separately, as in attention.
        return ops.stack([ops.mean(part * part) for part in parts])

    return runner(function, arrays, backward=True)
