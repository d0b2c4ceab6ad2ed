"""The peak rate of large matrix products on a backend."""

import time

import keras
import numpy as np

_SIZE = 2048


def prepare(case, size=_SIZE):
    """Returns a callable that multiplies float32 matrices `steps` times."""
    rng = np.random.default_rng(0)
    first, second = (
        keras.ops.convert_to_tensor(
            rng.normal(size=(size, size)).astype("float32")
        )
        for _ in range(2)
    )

    def run(steps):
        for _ in range(steps):
            keras.ops.matmul(first, second)
        # Products run in order, so the last one ends after all others.
        keras.ops.convert_to_numpy(keras.ops.matmul(first, second)[:1, :1])

    return run


def measure(repeats=12):
    """Returns the best measured rate, in GFLOP/s."""
    run = prepare(None)
    run(2)
    rates = []
    for _ in range(repeats):
        started = time.perf_counter()
        run(3)
        rates.append(4 * 2 * _SIZE**3 / (time.perf_counter() - started))
    return max(rates) / 1e9


if __name__ == "__main__":
    print(measure())
