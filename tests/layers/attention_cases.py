"""Calls of an attention layer with their expected masks."""

import numpy as np

from keras_attn.layers import MultiHeadAttention
from tests.helpers import reference
from tests.helpers.contract import randomize

B, T, S, N, D = 2, 4, 5, 2, 6

RNG = np.random.default_rng(1)
QUERY = RNG.normal(size=(B, T, D)).astype("float32")
VALUE = RNG.normal(size=(B, S, D + 1)).astype("float32")
KEY = RNG.normal(size=(B, S, D - 1)).astype("float32")

RIGHT = np.array([[1, 1, 1, 1, 1], [1, 1, 0, 0, 0]], "bool")
LEFT = np.array([[0, 0, 1, 1, 1], [1, 1, 1, 1, 1]], "bool")
HOLES = np.array([[1, 0, 1, 1, 0], [0, 1, 1, 0, 1]], "bool")
QUERY_MASK = np.array([[1, 1, 1, 0], [0, 1, 1, 1]], "bool")
EXPLICIT = RNG.random((B, N, T, S)) < 0.6
QUERY_POSITIONS = np.int32([[2, 3, 4, 5], [1, -1, 2, 3]])
KEY_POSITIONS = np.int32([[0, 1, 2, 3, 4], [0, 1, -1, 2, 5]])


def _rows(mask):
    return mask[:, None, :, None]


def _columns(mask):
    return mask[:, None, None, :]


# name: (constructor arguments, call arguments, mask). Query and value differ.
CALLS = {
    "nothing": ({}, {}, True),
    "query mask": ({}, {"query_mask": QUERY_MASK}, _rows(QUERY_MASK)),
    "value mask": ({}, {"value_mask": HOLES}, _columns(HOLES)),
    "key mask": ({}, {"key_mask": RIGHT}, _columns(RIGHT)),
    "value and key mask": (
        {},
        {"value_mask": HOLES, "key_mask": RIGHT},
        _columns(HOLES & RIGHT),
    ),
    "all masks": (
        {},
        {"query_mask": QUERY_MASK, "value_mask": LEFT},
        _rows(QUERY_MASK) & _columns(LEFT),
    ),
    "mask (T, S)": (
        {},
        {"attention_mask": EXPLICIT[0, 0]},
        EXPLICIT[:1, :1],
    ),
    "mask (B, T, S)": (
        {},
        {"attention_mask": EXPLICIT[:, 0]},
        EXPLICIT[:, :1],
    ),
    "mask (B, N, T, S)": ({}, {"attention_mask": EXPLICIT}, EXPLICIT),
    "integer mask": (
        {},
        {"attention_mask": EXPLICIT[:, 0].astype("int32")},
        EXPLICIT[:, :1],
    ),
    "causal": (
        {},
        {"use_causal_mask": True},
        reference.visible(B, T, S, causal=True),
    ),
    "window": (
        {"sliding_window": 2},
        {},
        reference.visible(B, T, S, window=2),
    ),
    "everything": (
        {"sliding_window": 3},
        {
            "query_mask": QUERY_MASK,
            "value_mask": RIGHT,
            "attention_mask": EXPLICIT[:, 0],
            "use_causal_mask": True,
        },
        reference.visible(B, T, S, causal=True, window=3)
        & _rows(QUERY_MASK)
        & _columns(RIGHT)
        & EXPLICIT[:, :1],
    ),
}

# Calls that keras.layers.MultiHeadAttention does not support.
OWN_CALLS = {
    "mask (B, N, T, S) and others": (
        {},
        {"value_mask": RIGHT, "attention_mask": EXPLICIT},
        _columns(RIGHT) & EXPLICIT,
    ),
    "always causal": (
        {"causal": True},
        {},
        reference.visible(B, T, S, causal=True),
    ),
    "positions": (
        {"causal": True},
        {"query_positions": QUERY_POSITIONS, "key_positions": KEY_POSITIONS},
        reference.visible(
            B,
            T,
            S,
            query_positions=QUERY_POSITIONS,
            key_positions=KEY_POSITIONS,
            causal=True,
        ),
    ),
    "positions and masks": (
        {"sliding_window": 3},
        {
            "query_positions": QUERY_POSITIONS,
            "key_positions": KEY_POSITIONS,
            "query_mask": QUERY_MASK,
            "value_mask": RIGHT,
        },
        reference.visible(
            B,
            T,
            S,
            query_positions=QUERY_POSITIONS,
            key_positions=KEY_POSITIONS,
            window=3,
        )
        & _rows(QUERY_MASK)
        & _columns(RIGHT),
    ),
}


def spread(mask):
    """Broadcasts a mask to (B, N, T, S)."""
    return np.broadcast_to(mask, (B, N, T, S))


def mutants(mask):
    """Returns wrong masks that a test must detect."""
    mask = spread(mask)
    everything = np.ones_like(mask)
    if mask.all():
        return [everything & ~np.eye(T, S, dtype="bool")]
    flipped = mask.copy()
    flipped[1] = mask[1, ..., ::-1]
    one_off = np.roll(mask, 1, axis=-1)
    return [
        wrong
        for wrong in (everything, flipped, one_off)
        if (wrong != mask).any()
    ]


def make(num_heads=N, key_dim=3, key=KEY, **kwargs):
    """Builds a layer for QUERY, VALUE and KEY with nonzero weights."""
    layer = MultiHeadAttention(num_heads, key_dim, **kwargs)
    layer.build(QUERY.shape, VALUE.shape, key.shape)
    return randomize(layer)


def sees(mask):
    """Returns bool (B, T), True for queries with a visible key in any head."""
    return spread(mask).any(axis=(1, 3))
