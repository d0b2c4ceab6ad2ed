"""A `ScoredAttention` of each score, and what the loops say it computes."""

import numpy as np

from keras_attn.layers import ScoredAttention
from tests import reference
from tests.contract import randomize
from tests.layers.attention_cases import CALLS, KEY, QUERY, VALUE, B, D, S, T
from tests.ops.cases import normal

# Keys as wide as the queries.
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
    """A built layer for QUERY, VALUE and the key, no weight of which is 0."""
    layer = ScoredAttention(score, **kwargs)
    key = KEYS[score] if key is None else key
    layer.build(QUERY.shape, VALUE.shape, key.shape)
    return randomize(layer)


def expected_of(
    layer, mask=None, query=QUERY, value=VALUE, key=None, key_positions=None
):
    """Output and weights, by the loops."""
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
