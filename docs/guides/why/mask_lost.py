"""Two attention layers attend to one padded memory in sequence."""

import keras
import numpy as np
from keras import layers, ops

import keras_attn

print(f"keras {keras.__version__} on {keras.backend.backend()}")
# All keys are equal, and so are the weights: 2 of 5 positions are 40 %.
embed = layers.Embedding(10, 8, embeddings_initializer="ones", mask_zero=True)
ids = np.array([[5, 6, 7, 0, 0]])
query = ops.ones((1, 2, 8))


def attend_twice(kind):
    memory = embed(ids)
    fractions = []
    for _ in range(2):
        attention = kind(num_heads=2, key_dim=4)
        _, weights = attention(query, memory, return_attention_scores=True)
        on_padding = ops.convert_to_numpy(weights)[..., 3:].sum(-1)
        fractions.append(f"{on_padding.mean():.0%}")
    kept = keras_attn.ops.visibility.implicit_mask(memory) is not None
    state = "is still there" if kept else "is gone"
    return f"{fractions[0]}, then {fractions[1]} on padding; the mask {state}"


print("theirs:", attend_twice(layers.MultiHeadAttention))
print("ours:  ", attend_twice(keras_attn.layers.MultiHeadAttention))
