"""The doctor's report on the Transformer of TensorFlow's translation tutorial.

The architecture of https://www.tensorflow.org/text/tutorials/transformer, with
the same layer names, reimplemented in plain Keras 3 so that it runs on every
backend. Two things vary: whether the layers set `supports_masking`, and which
attention layer they use.
"""

import keras
import numpy as np
from keras import layers, ops

import keras_attn

WIDTH, HEADS = 32, 4


class PositionalEmbedding(layers.Layer):
    def __init__(self, vocabulary_size):
        super().__init__()
        self.embedding = layers.Embedding(
            vocabulary_size, WIDTH, mask_zero=True
        )

    def compute_mask(self, inputs, mask=None):
        return self.embedding.compute_mask(inputs)

    def call(self, ids):
        x = self.embedding(ids) * WIDTH**0.5
        position = ops.arange(ids.shape[1], dtype="float32")[:, None]
        rate = 1e4 ** (-ops.arange(WIDTH // 2, dtype="float32") / (WIDTH // 2))
        sinusoids = ops.sin(position * rate), ops.cos(position * rate)
        return x + ops.concatenate(sinusoids, axis=-1)


class Attention(layers.Layer):
    """Attention, residual connection and norm."""

    def __init__(self, kind, supports_masking, name):
        super().__init__(name=name)
        self.mha = kind(num_heads=HEADS, key_dim=WIDTH // HEADS, dropout=0.1)
        self.add = layers.Add()
        self.norm = layers.LayerNormalization()
        self.supports_masking = supports_masking

    def call(self, x, context, causal=False):
        mixed = self.mha(query=x, value=context, use_causal_mask=causal)
        return self.norm(self.add([x, mixed]))


class FeedForward(layers.Layer):
    def __init__(self, supports_masking):
        super().__init__()
        self.inner = layers.Dense(64, activation="relu")
        self.outer = layers.Dense(WIDTH)
        self.add = layers.Add()
        self.norm = layers.LayerNormalization()
        self.supports_masking = supports_masking

    def call(self, x):
        return self.norm(self.add([x, self.outer(self.inner(x))]))


class EncoderLayer(layers.Layer):
    def __init__(self, kind, supports_masking, name):
        super().__init__(name=name)
        self.self_attention = Attention(
            kind, supports_masking, "self_attention"
        )
        self.ffn = FeedForward(supports_masking)
        self.supports_masking = supports_masking

    def call(self, x):
        return self.ffn(self.self_attention(x, x))


class DecoderLayer(layers.Layer):
    def __init__(self, kind, supports_masking, name):
        super().__init__(name=name)
        self.causal_attention = Attention(
            kind, supports_masking, "self_attention"
        )
        self.cross_attention = Attention(
            kind, supports_masking, "cross_attention"
        )
        self.ffn = FeedForward(supports_masking)
        self.supports_masking = supports_masking

    def call(self, x, context):
        x = self.causal_attention(x, x, causal=True)
        return self.ffn(self.cross_attention(x, context))


class Transformer(keras.Model):
    def __init__(self, kind, supports_masking, num_layers=2):
        super().__init__(name="transformer")
        args = kind, supports_masking
        self.source_embedding = PositionalEmbedding(20)
        self.target_embedding = PositionalEmbedding(20)
        self.encoder_layers = [
            EncoderLayer(*args, name=f"encoder_{n}") for n in range(num_layers)
        ]
        self.decoder_layers = [
            DecoderLayer(*args, name=f"decoder_{n}") for n in range(num_layers)
        ]
        self.final_layer = layers.Dense(20, name="logits")

    def call(self, inputs):
        context, x = inputs
        context = self.source_embedding(context)
        for layer in self.encoder_layers:
            context = layer(context)
        x = self.target_embedding(x)
        for layer in self.decoder_layers:
            x = layer(x, context)
        return self.final_layer(x)


def examine(kind, supports_masking):
    """Returns the doctor's report on an untrained model."""
    keras.utils.set_random_seed(0)
    model = Transformer(kind, supports_masking)
    source = np.array([[5, 6, 7, 8, 9, 10], [11, 12, 13, 0, 0, 0]])
    target = np.array([[1, 14, 15, 16, 0], [1, 17, 0, 0, 0]])
    return keras_attn.doctor(model, (source, target))


CASES = {
    "As published": (layers.MultiHeadAttention, False),
    "Layers that propagate masks": (layers.MultiHeadAttention, True),
    "Attention that preserves masks": (
        keras_attn.layers.MultiHeadAttention,
        True,
    ),
}

if __name__ == "__main__":
    for title, case in CASES.items():
        print(f"## {title}\n\n{examine(*case)}\n")
