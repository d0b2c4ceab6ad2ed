"""Properties of ScoredAttention for all scores and masks."""

import hypothesis
import numpy as np
from hypothesis import strategies as st
from keras import ops

from keras_attn.layers import ScoredAttention
from tests.helpers import reference
from tests.helpers.contract import attach_mask, randomize
from tests.helpers.ops_cases import assert_close, normal, values
from tests.layers.scored_cases import expected_of

B, T, S, D = 2, 3, 5, 4
QUERY, KEY = normal(B, T, D, seed=1), normal(B, S, D, seed=2)
VALUE = normal(B, S, 3, seed=3)
few_examples = hypothesis.settings(max_examples=15)
scores = st.sampled_from(sorted(reference.SCORES))
by_content = st.sampled_from(sorted(set(reference.SCORES) - {"location"}))
locals_ = st.sampled_from([None, "monotonic", "predictive"])
LAYERS = {}


def masks(length):
    row = st.lists(st.booleans(), min_size=length, max_size=length)
    return st.lists(row, min_size=B, max_size=B).map(np.array)


def layer_of(score, local=None, hard=None):
    """Returns one layer per kind, to avoid repeated compilation."""
    kind = score, local, hard
    if kind not in LAYERS:
        layer = ScoredAttention(score, local=local, window=2, hard=hard)
        layer.build(QUERY.shape, VALUE.shape, KEY.shape)
        LAYERS[kind] = randomize(layer)
    return LAYERS[kind]


def local_window(local, queries, keys):
    """Returns the window of local-m, bool (1, T, S)."""
    gap = np.abs(np.arange(queries)[:, None] - np.arange(keys))[None]
    return gap <= (2 if local == "monotonic" else T + S)


def poisoned(x, mask):
    """Replaces padding by NaN and attaches the implicit mask."""
    x = np.where(mask[..., None], x, np.nan).astype("float32")
    return attach_mask(ops.convert_to_tensor(x), mask)


@few_examples
@hypothesis.given(scores, locals_, masks(T), masks(S))
def test_padding_does_not_change_outputs(score, local, query_mask, key_mask):
    """The padding is NaN; the loops run on each sequence alone."""
    layer = layer_of(score, local)
    output, weights = layer(
        poisoned(QUERY, query_mask),
        poisoned(VALUE, key_mask),
        poisoned(KEY, key_mask),
        key_mask=key_mask,
        return_attention_scores=True,
    )
    output, weights = values(output), values(weights)
    assert (output[~query_mask] == 0).all()
    assert (weights.transpose(0, 2, 1)[~key_mask] == 0).all()
    for row in range(B):
        queries, keys = query_mask[row], key_mask[row]
        expected, _ = expected_of(
            layer,
            local_window(local, queries.sum(), keys.sum()),
            QUERY[row : row + 1, queries],
            VALUE[row : row + 1, keys],
            KEY[row : row + 1, keys],
        )
        assert_close(output[row, queries], expected[0])


@few_examples
@hypothesis.given(by_content, masks(S), st.permutations(range(S)))
def test_permuting_the_keys_does_not_change_outputs(score, mask, order):
    layer = layer_of(score)
    output, weights = layer(
        QUERY, VALUE, KEY, key_mask=mask, return_attention_scores=True
    )
    other, moved = layer(
        QUERY,
        VALUE[:, order],
        KEY[:, order],
        key_mask=mask[:, order],
        return_attention_scores=True,
    )
    assert_close(values(other), values(output))
    assert_close(values(moved), values(weights)[..., order])


@few_examples
@hypothesis.given(
    scores, st.sampled_from(["reinforce", "gumbel"]), masks(S), st.booleans()
)
def test_hard_attention_chooses_one_visible_key(score, hard, mask, training):
    _, weights = layer_of(score, hard=hard)(
        QUERY,
        VALUE,
        KEY,
        key_mask=mask,
        return_attention_scores=True,
        training=training,
    )
    weights = values(weights)
    assert set(weights.ravel().tolist()) <= {0.0, 1.0}
    visible = np.broadcast_to(mask.any(1, keepdims=True), (B, T))
    np.testing.assert_array_equal(weights.sum(-1), visible)
    assert (weights.transpose(0, 2, 1)[~mask] == 0).all()


@few_examples
@hypothesis.given(scores, locals_, masks(S), st.integers(0, T - 1))
def test_queries_are_independent(score, local, mask, changed):
    layer = layer_of(score, local)
    query = QUERY.copy()
    query[:, changed] += 1
    before, after = (
        values(layer(x, VALUE, KEY, value_mask=mask)) for x in (QUERY, query)
    )
    same = np.arange(T) != changed
    assert_close(after[:, same], before[:, same], 1e-6)
