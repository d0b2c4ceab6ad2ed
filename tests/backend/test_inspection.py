"""Values are looked at where that is free, and nowhere else."""

import keras
import numpy as np
from keras import ops

from keras_attn.backend import compiled, concrete


def test_a_tensor_at_hand():
    array = np.int32([[1, 2], [3, 4]])
    seen = concrete(ops.convert_to_tensor(array))
    # On an accelerator nobody looks.
    assert seen is None or (
        isinstance(seen, np.ndarray) and np.array_equal(seen, array)
    )


def test_a_symbolic_tensor():
    assert concrete(keras.KerasTensor((2, 3))) is None


def test_inside_a_program_that_is_traced():
    seen = []

    def function(x):
        seen.append(concrete(x))
        return x + 1

    compiled(function, [])(ops.ones((2,)))
    traced = keras.backend.backend() != "torch"
    assert len(seen) >= 1
    assert (seen[0] is None) or not traced
