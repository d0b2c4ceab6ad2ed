"""A Transformer of a few hundred weights, and a batch for it."""

import contextlib

import keras
import numpy as np

from keras_attn.layers import T5Position
from keras_attn.models import Transformer
from tests.contract import randomize

SIZE = 11
SOURCE = np.array([[5, 6, 7, 2], [8, 2, 0, 0]], "int32")
TARGET = np.array([[1, 9, 4], [1, 7, 0]], "int32")
LABELS = np.array([[9, 4, 2], [7, 2, 0]], "int32")


def tiny_transformer(random=True, relative=False, **kwargs):
    """Returns a model of one layer without dropout, its biases not zero.

    Args:
        random: bool. Whether all of its weights are drawn anew.
        relative: bool. Whether both stacks have relative positions.
        **kwargs: of `Transformer`.
    """
    if relative:
        # Made here: a position belongs to one model.
        kwargs |= {
            "encoder_attention_position": T5Position(
                2, 8, 6, name="encoder_relative"
            ),
            "decoder_attention_position": T5Position(
                2, 8, 6, bidirectional=False, name="decoder_relative"
            ),
        }
    sizes = {
        "num_layers": 1,
        "num_heads": 2,
        "hidden_dim": 8,
        "intermediate_dim": 12,
        "dropout": 0.0,
    }
    model = Transformer(SIZE, **(sizes | kwargs))
    return randomize(model) if random else model


def talkative_transformer(seed, **kwargs):
    """Returns a model whose likeliest tokens depend on the source."""
    model = randomize(tiny_transformer(**kwargs), scale=0.7, seed=seed)
    for variable in model.weights:
        # A random offset before the logits would settle which token it is.
        if variable.path.endswith(("gamma", "beta")):
            variable.assign(np.full(variable.shape, "gamma" in variable.path))
    return model


def untrained_transformer(**kwargs):
    """Returns a model ready to learn, the same one on every backend."""
    model = randomize(tiny_transformer(**kwargs), scale=0.25)
    for variable in model.weights:
        if variable.path.endswith(("gamma", "beta", "bias")):
            variable.assign(np.full(variable.shape, "gamma" in variable.path))
    return model


@contextlib.contextmanager
def never_drawn():
    """Makes models of any size whose weights are never allocated.

    Weights made here can be counted. Without the end, Keras would draw them
    all at the end of this scope or of the next one.
    """
    with keras.StatelessScope(initialize_variables=False):
        yield
    keras.utils.clear_session()
