"""A query that may look nowhere, in float16, where all scores are low."""

import keras
import numpy as np
from keras import layers, ops

import keras_attn

print(f"keras {keras.__version__} on {keras.backend.backend()}")
query = np.full((1, 2, 16), 8, "float16")
value = np.full((1, 3, 16), -8, "float16")
nowhere = np.zeros((1, 3), "bool")

# Both without any weights of their own: the score is the dot product.
theirs = layers.Attention(dtype="float16")
ours = keras_attn.layers.ScoredAttention("dot", dtype="float16")
outputs = {
    "theirs:": theirs([query, value], mask=[None, nowhere]),
    "ours:  ": ours(query, value, value_mask=nowhere),
}
for whose, output in outputs.items():
    output = ops.convert_to_numpy(output)
    print(whose, "NaN" if np.isnan(output).any() else output.max())
