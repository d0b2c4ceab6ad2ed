"""A task for two heads: which letters stand at two distances from here?

Letters stand in a circle. For each of them two are asked for: the one so many
places before it, and the one so many places behind it.
"""

from typing import NamedTuple

import keras
import numpy as np

from keras_attn.layers import MultiHeadAttention, PositionalEmbedding


class Circles(NamedTuple):
    """Rows of the task.

    Args:
        tokens: int32 (B, T), letters.
        answers: int32 (B, T, P). The letter at each of P distances.
    """

    tokens: np.ndarray
    answers: np.ndarray


class Learner(NamedTuple):
    """A model that learns the task, and a look inside.

    Args:
        model: `keras.Model` from tokens to logits (B, T, P, V).
        looker: `keras.Model` from tokens to weights (B, N, T, T), of the same
            layers.
    """

    model: keras.Model
    looker: keras.Model


def draw(count, length, letters, distances, seed=0):
    """Draws rows; all letters are equally likely.

    Args:
        count: int. B.
        length: int. T, letters of a circle.
        letters: int. V.
        distances: ints, P of them. -2 asks for the letter two places before, 3
            for the one three places behind.
        seed: int. The same seed draws the same. Default 0.

    Returns:
        `Circles`.
    """
    generator = np.random.default_rng(seed)
    tokens = generator.integers(letters, size=(count, length), dtype="int32")
    answers = [np.roll(tokens, -distance, axis=1) for distance in distances]
    return Circles(tokens, np.stack(answers, axis=-1))


def learner(length, letters, answers, num_heads, width, seed=0):
    """Makes an embedding, places, one attention and a dense layer behind it.

    There is no way around the attention: what is answered has come through its
    weights.

    Args:
        length: int. T.
        letters: int. V.
        answers: int. P, the letters that are asked for at each place.
        num_heads: int. N, dividing `width`: each head has width / N features.
        width: int. D.
        seed: int. Seed of the weights. Default 0.

    Returns:
        `Learner`.
    """
    keras.utils.set_random_seed(seed)
    ids = keras.Input((length,), dtype="int32")
    x = keras.layers.Embedding(letters, width)(ids)
    x = PositionalEmbedding("learned", max_sequence_length=length)(x)
    mixed, weights = MultiHeadAttention(num_heads, width // num_heads)(
        x, x, return_attention_scores=True
    )
    logits = keras.layers.Dense(answers * letters)(mixed)
    logits = keras.layers.Reshape((length, answers, letters))(logits)
    return Learner(keras.Model(ids, logits), keras.Model(ids, weights))


def mass(weights, distances):
    """Adds up what heads put on the places that are asked for.

    Args:
        weights: float (N, T, T), of a circle of T letters.
        distances: ints, P of them, as in `draw`.

    Returns:
        Float (N, P): the mean weight at each distance.
    """
    places = np.arange(weights.shape[-1])
    found = [
        weights[:, places, (places + distance) % len(places)].mean(-1)
        for distance in distances
    ]
    return np.stack(found, axis=-1)
