"""`ScoredAttention` layers, and their outputs computed by loops."""

import numpy as np

from keras_attn.layers import ScoredAttention
from tests.helpers import reference
from tests.helpers.contract import randomize
from tests.helpers.ops_cases import normal
from tests.layers.attention_cases import CALLS, KEY, QUERY, VALUE, B, D, S, T

# Keys of the same width as the queries.
WIDE = normal(B, S, D, seed=7)
KEYS = dict.fromkeys(reference.SCORES, KEY) | dict.fromkeys(
    ("dot", "scaled_dot", "cosine"), WIDE
)

# name: (call arguments, mask (B, T, S)). There is one head.
MASKS = {
    name: (arguments, np.broadcast_to(mask, (B, 1, T, S))[:, 0])
    for name, (constructor, arguments, mask) in CALLS.items()
    if not constructor and np.shape(mask)[1:2] != (2,)
}


def make(score, *, key=None, **kwargs):
    """Builds a layer for QUERY, VALUE and the key with nonzero weights."""
    layer = ScoredAttention(score, **kwargs)
    key = KEYS[score] if key is None else key
    layer.build(QUERY.shape, VALUE.shape, key.shape)
    return randomize(layer)


def expected_of(
    layer, mask=None, query=QUERY, value=VALUE, key=None, key_positions=None
):
    """Computes output and weights with loops."""
    arrays = layer.get_weights()
    key = KEYS[layer.score] if key is None else key
    nearness = None
    if layer.local == "predictive":
        grid = *query.shape[:2], key.shape[1]
        mask = np.broadcast_to(True if mask is None else mask, grid)
        mask, nearness = reference.predicted_window(
            query, arrays[-2:], mask, layer.window, key_positions
        )
        arrays = arrays[:-2]
    return reference.scored_attention(
        layer.score, query, key, value, arrays, mask, key_positions, nearness
    )
