"""Properties of MultiHeadAttention for all masks of a batch."""

import hypothesis
import numpy as np
from hypothesis import strategies as st
from keras import ops

from keras_attn.layers import MultiHeadAttention
from tests.helpers import reference
from tests.helpers.contract import attach_mask, randomize
from tests.helpers.ops_cases import assert_close, normal, values

B, T, D, N = 2, 5, 6, 2
X = normal(B, T, D, seed=1)
few_examples = hypothesis.settings(max_examples=15)
masks = st.lists(
    st.lists(st.booleans(), min_size=T, max_size=T), min_size=B, max_size=B
).map(np.array)
dtypes = st.sampled_from(["float32", "mixed_bfloat16", "mixed_float16"])
LAYERS = {}


def layer_of(dtype="float32", causal=False, window=None):
    """Returns one layer per kind, to avoid repeated compilation."""
    kind = dtype, causal, window
    if kind not in LAYERS:
        layer = MultiHeadAttention(
            N, 3, causal=causal, sliding_window=window, dtype=dtype
        )
        layer.build(X.shape, X.shape)
        LAYERS[kind] = randomize(layer)
    return LAYERS[kind]


def masked(x, mask):
    return attach_mask(ops.convert_to_tensor(x), mask)


@few_examples
@hypothesis.given(masks, st.booleans(), st.sampled_from([None, 2]), dtypes)
def test_self_attention_of_padded_batches(mask, causal, window, dtype):
    """The padding is NaN; the loops run on each sequence alone."""
    layer = layer_of(dtype, causal, window)
    poisoned = np.where(mask[..., None], X, np.nan).astype("float32")
    tensor = masked(poisoned, mask)
    output = values(layer(tensor, tensor))
    assert (output[~mask] == 0).all()
    for row in range(B):
        count = int(mask[row].sum())
        expected, _ = reference.multi_head_attention(
            X[row : row + 1, mask[row]],
            X[row : row + 1, mask[row]],
            layer.get_weights(),
            mask=reference.visible(
                1, count, count, causal=causal, window=window
            ),
        )
        assert_close(
            output[row, mask[row]],
            expected[0],
            1e-5 if dtype == "float32" else 5e-2,
        )


@few_examples
@hypothesis.given(masks, masks, st.booleans())
def test_cross_attention_of_padded_batches(query_mask, value_mask, scores):
    layer = layer_of()
    memory = normal(B, T, D, seed=2)
    poisoned = np.where(value_mask[..., None], memory, np.nan)
    output = layer(
        masked(X, query_mask),
        masked(poisoned.astype("float32"), value_mask),
        return_attention_scores=scores,
    )
    output = values(output[0] if scores else output)
    expected, _ = reference.multi_head_attention(
        X,
        memory,
        layer.get_weights(),
        mask=query_mask[:, None, :, None] & value_mask[:, None, None],
    )
    assert_close(output, expected)
    fully_masked = ~query_mask | ~value_mask.any(1, keepdims=True)
    assert (output[fully_masked] == 0).all()


@few_examples
@hypothesis.given(masks, st.integers(0, T - 1), st.sampled_from([None, 2]))
def test_later_tokens_do_not_change_outputs(mask, token, window):
    layer = layer_of(causal=True, window=window)
    changed = X.copy()
    changed[:, token] += 1
    before, after = (
        values(layer(x, x)) for x in (masked(X, mask), masked(changed, mask))
    )
    assert_close(after[:, :token], before[:, :token], 1e-6)
    moved = (after[:, token] != before[:, token]).any(-1)
    np.testing.assert_array_equal(moved, mask[:, token])


@few_examples
@hypothesis.given(masks, st.booleans())
def test_batch_rows_are_independent(mask, causal):
    layer = layer_of(causal=causal)
    changed = np.concatenate([X[:1], 3 * X[1:]])
    before, after = (
        values(layer(x, x)) for x in (masked(X, mask), masked(changed, mask))
    )
    assert_close(after[0], before[0], 1e-6)
