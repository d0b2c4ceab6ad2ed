"""`full` gives a tensor of one value without reading it back."""

import keras
import numpy as np
import pytest

from keras_attn.backend import full
from keras_attn.testing import host_reads


@pytest.mark.parametrize(
    "value, dtype",
    [(-1, "int32"), (-np.inf, "float32"), (True, "bool"), (0.5, "bfloat16")],
)
def test_full(value, dtype):
    with host_reads() as found:
        x = full((2, 3), value, dtype)
    assert not found
    assert keras.backend.standardize_dtype(x.dtype) == dtype
    array = keras.ops.convert_to_numpy(keras.ops.cast(x, "float32"))
    np.testing.assert_array_equal(array, np.full((2, 3), value, "float32"))
