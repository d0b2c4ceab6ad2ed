"""The peak rate of large matrix products on a backend.

`python -m benchmarks.harness.matrix_peak float32 8192 bfloat16 16384` prints a
line for each dtype and size; without arguments, for float32 and 2048.
"""

import sys
import time

import keras
import numpy as np

_SIZE = 2048


def prepare(case, size=_SIZE, dtype="float32"):
    """Returns a callable that multiplies matrices `steps` times."""
    rng = np.random.default_rng(0)
    first, second = (
        keras.ops.convert_to_tensor(
            rng.standard_normal((size, size), "float32"), dtype
        )
        for _ in range(2)
    )

    def run(steps):
        for _ in range(steps):
            keras.ops.matmul(first, second)
        # Products run in order, so the last one ends after all others.
        keras.ops.convert_to_numpy(keras.ops.matmul(first, second)[:1, :1])

    return run


def measure(repeats=12, size=_SIZE, dtype="float32", steps=3):
    """Returns the best measured rate, in GFLOP/s."""
    run = prepare(None, size, dtype)
    run(2)
    rates = []
    for _ in range(repeats):
        started = time.perf_counter()
        run(steps)
        seconds = time.perf_counter() - started
        rates.append((steps + 1) * 2 * size**3 / seconds)
    return max(rates) / 1e9


if __name__ == "__main__":
    given = sys.argv[1:] or ["float32", str(_SIZE)]
    for dtype, size in zip(given[::2], given[1::2], strict=True):
        # On a GPU a product can take little longer than reading its result.
        steps = 3 if int(size) <= _SIZE else 15
        print(measure(6 if steps > 3 else 12, int(size), dtype, steps))
