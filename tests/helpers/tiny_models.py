"""Tiny Transformer models and a batch of inputs."""

import contextlib

import keras
import numpy as np

from keras_attn.layers import RotaryPosition, T5Position
from keras_attn.models import Bert, Transformer
from tests.helpers.contract import randomize

SIZE = 11
SOURCE = np.array([[5, 6, 7, 2], [8, 2, 0, 0]], "int32")
TARGET = np.array([[1, 9, 4], [1, 7, 0]], "int32")
LABELS = np.array([[9, 4, 2], [7, 2, 0]], "int32")


def tiny_transformer(random=True, relative=False, **kwargs):
    """Returns a one-layer model without dropout and with nonzero biases.

    Args:
        random: bool. Whether to randomize all weights.
        relative: bool. Whether to use relative positions in both stacks.
        **kwargs: arguments of `Transformer`.
    """
    if relative:
        # Created here, because a position belongs to one model.
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
    """Returns a model whose most likely tokens depend on the source."""
    model = randomize(tiny_transformer(**kwargs), scale=0.7, seed=seed)
    for variable in model.weights:
        # A random offset before the logits would determine the token.
        if variable.path.endswith(("gamma", "beta")):
            variable.assign(np.full(variable.shape, "gamma" in variable.path))
    return model


def untrained_transformer(**kwargs):
    """Returns an untrained model with the same weights on every backend."""
    model = randomize(tiny_transformer(**kwargs), scale=0.25)
    for variable in model.weights:
        if variable.path.endswith(("gamma", "beta", "bias")):
            variable.assign(np.full(variable.shape, "gamma" in variable.path))
    return model


@contextlib.contextmanager
def never_drawn():
    """Creates models in this scope without allocating their weights.

    The weights can be counted. Without `clear_session`, Keras would initialize
    them all at the end of this scope or of the next one.
    """
    with keras.StatelessScope(initialize_variables=False):
        yield
    keras.utils.clear_session()


def tiny_t5(vocabulary_size, position=None, **options):
    """Returns a `Transformer` with the blocks of T5, except for the options.

    Args:
        vocabulary_size: int.
        position: dict. Arguments of the two `T5Position`. Default None.
        **options: arguments of `Transformer`, with `num_heads`.
    """
    positions = {
        f"{side}_attention_position": T5Position(
            options["num_heads"],
            bidirectional=side == "encoder",
            **(position or {}),
        )
        for side in ("encoder", "decoder")
    }
    return Transformer(
        vocabulary_size,
        **{
            "use_bias": False,
            "normalization": "rms_norm",
            "normalize_first": True,
            "position_embedding": None,
            "scale_embedding": False,
            "dropout": 0.0,
            **positions,
            **options,
        },
    )


def tiny_modernbert(vocabulary_size, **options):
    """Returns a `Bert` with the blocks of ModernBERT, except for the options.

    Args:
        vocabulary_size: int.
        **options: arguments of `Bert`, with `num_layers`.
    """
    layers = options["num_layers"]
    near, far = RotaryPosition(10_000.0), RotaryPosition(160_000.0)
    return Bert(
        vocabulary_size,
        **{
            "use_bias": False,
            "normalization": "bias_free_layer_norm",
            "normalize_first": True,
            "skip_first_norm": True,
            "gated": True,
            "epsilon": 1e-5,
            "dropout": 0.0,
            "attention_dropout": 0.0,
            "position_embedding": None,
            "attention_position": [
                near if i % 3 else far for i in range(layers)
            ],
            "sliding_window": [3 if i % 3 else None for i in range(layers)],
            "num_segments": None,
            "pooler": False,
            **options,
        },
    )
