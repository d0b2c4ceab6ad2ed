"""Symbolic shapes and the config of an attention layer."""

import keras
import numpy as np
from keras import layers

import keras_attn

print(f"keras {keras.__version__} on {keras.backend.backend()}")
query, value = keras.Input((2, 8)), keras.Input((5, 8))
arrays = np.ones((1, 2, 8), "float32"), np.ones((1, 5, 8), "float32")


def describe(kind):
    attention = kind(num_heads=2, key_dim=4, flash_attention=False)
    _, symbol = attention(query, value, return_attention_scores=True)
    _, scores = attention(*arrays, return_attention_scores=True)
    config = attention.get_config()
    return (
        f"scores {symbol.shape[1:]} announced, {tuple(scores.shape)[1:]} real; "
        f"flash_attention in config: {'flash_attention' in config}"
    )


print("theirs:", describe(layers.MultiHeadAttention))
print("ours:  ", describe(keras_attn.layers.MultiHeadAttention))
