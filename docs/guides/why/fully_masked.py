"""A fully masked query, with and without returned weights."""

import keras
import numpy as np
from keras import layers, ops

import keras_attn

print(f"keras {keras.__version__} on {keras.backend.backend()}")
query, value = (
    np.random.default_rng(seed).normal(size=(1, 3, 8)).astype("float32")
    for seed in (0, 1)
)
mask = np.ones((1, 3, 3), "bool")
mask[:, 1] = False


def fully_masked_rows(kind):
    attention = kind(num_heads=2, key_dim=4)
    attention.build(query.shape, value.shape)
    random = np.random.default_rng(2)
    attention.set_weights(
        [random.normal(size=weight.shape) for weight in attention.weights]
    )
    one = attention(query, value, attention_mask=mask)
    other, _ = attention(
        query, value, attention_mask=mask, return_attention_scores=True
    )
    rows = [ops.convert_to_numpy(output)[0, 1] for output in (one, other)]
    apart = np.abs(rows[0] - rows[1]).max()
    zero = all((row == 0).all() for row in rows)
    return f"the two paths differ by {apart:.2f}; zeros on both: {zero}"


print("theirs:", fully_masked_rows(layers.MultiHeadAttention))
print("ours:  ", fully_masked_rows(keras_attn.layers.MultiHeadAttention))
