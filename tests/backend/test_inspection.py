"""`concrete` reads values only where that is free."""

import keras
import numpy as np
from keras import ops

from keras_attn.backend import compiled, concrete


def test_eager_tensor():
    array = np.int32([[1, 2], [3, 4]])
    seen = concrete(ops.convert_to_tensor(array))
    # Values are not read from accelerators.
    assert seen is None or (
        isinstance(seen, np.ndarray) and np.array_equal(seen, array)
    )


def test_symbolic_tensor():
    assert concrete(keras.KerasTensor((2, 3))) is None


def test_traced_tensor():
    seen = []

    def function(x):
        seen.append(concrete(x))
        return x + 1

    compiled(function, [])(ops.ones((2,)))
    traced = keras.backend.backend() != "torch"
    assert len(seen) >= 1
    assert (seen[0] is None) or not traced
