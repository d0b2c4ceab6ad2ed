"""An explicit `query_mask`."""

import keras
import numpy as np
from keras import layers, ops

import keras_attn

print(f"keras {keras.__version__} on {keras.backend.backend()}")
x = np.random.default_rng(0).normal(size=(1, 4, 8)).astype("float32")
token_mask = np.array([[True, True, True, False]])


def describe(kind):
    attention = kind(num_heads=2, key_dim=4)
    without = ops.convert_to_numpy(attention(x, x))
    output = ops.convert_to_numpy(attention(x, x, query_mask=token_mask))
    changes = (
        "something" if np.abs(output - without).max() > 1e-6 else "nothing"
    )
    zero = (output[0, 3] == 0).all()
    return f"the mask changes {changes}; padded rows are zeros: {zero}"


print("theirs:", describe(layers.MultiHeadAttention))
print("ours:  ", describe(keras_attn.layers.MultiHeadAttention))
