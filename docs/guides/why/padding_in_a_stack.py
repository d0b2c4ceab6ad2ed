"""The attention weight on padding in six encoder layers."""

import keras
import numpy as np
from keras import layers

import keras_attn

print(f"keras {keras.__version__} on {keras.backend.backend()}")
ids = np.array([[5, 6, 7, 8] + [0] * 6])


def weight_on_padding(kind):
    tokens = keras.Input((10,), dtype="int32")
    x = layers.Embedding(20, 16, mask_zero=True)(tokens)
    weights = []
    for _ in range(6):
        attention = kind(num_heads=2, key_dim=8)
        mixed, layer_weights = attention(x, x, return_attention_scores=True)
        weights.append(layer_weights)
        x = layers.LayerNormalization()(layers.Add()([x, mixed]))
    model = keras.Model(tokens, weights)
    random = np.random.default_rng(0)
    for variable in model.trainable_variables:
        variable.assign(random.normal(scale=0.2, size=variable.shape))
    # From the four real queries to the six padding positions.
    found = [
        layer_weights[:, :, :4, 4:]
        for layer_weights in model.predict(ids, verbose=0)
    ]
    return [float(part.sum(-1).mean()) for part in found]


def describe(found):
    clean = [
        number for number, fraction in enumerate(found, 1) if fraction < 1e-6
    ]
    text = ", ".join(map(str, clean)) or "none"
    return (
        f"layers without leaks: {text}; "
        f"in the worst layer {max(found):.0%} on padding"
    )


print("theirs:", describe(weight_on_padding(layers.MultiHeadAttention)))
print(
    "ours:  ", describe(weight_on_padding(keras_attn.layers.MultiHeadAttention))
)
