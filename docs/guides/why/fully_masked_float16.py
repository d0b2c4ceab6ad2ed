"""A fully masked query in float16 with low scores."""

import keras
import numpy as np
from keras import layers, ops

import keras_attn

print(f"keras {keras.__version__} on {keras.backend.backend()}")
query = np.full((1, 2, 16), 8, "float16")
value = np.full((1, 3, 16), -8, "float16")
no_keys = np.zeros((1, 3), "bool")

# Neither layer has weights: the score is the dot product.
theirs = layers.Attention(dtype="float16")
ours = keras_attn.layers.ScoredAttention("dot", dtype="float16")
outputs = {
    "theirs:": theirs([query, value], mask=[None, no_keys]),
    "ours:  ": ours(query, value, value_mask=no_keys),
}
for label, output in outputs.items():
    output = ops.convert_to_numpy(output)
    print(label, "NaN" if np.isnan(output).any() else output.max())
