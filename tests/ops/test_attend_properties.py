"""Property-based tests of `attend` with random masks."""

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st
from keras import ops

from keras_attn.ops import Visibility, attend
from keras_attn.ops.visibility import make_visibility
from tests.helpers import reference
from tests.helpers.ops_cases import KERNELS, assert_close, normal, values

B, T, S, N, H = 2, 4, 6, 2, 4
few = hypothesis.settings(max_examples=15)


@st.composite
def calls(draw):
    """Draws arrays, a `Visibility` and the same as a mask (B, N, T, S)."""
    # Two shapes only: some backends compile again for every shape.
    queries, key_heads = draw(st.sampled_from([(T, 1), (S, 2)]))
    seed = draw(st.integers(0, 1000))
    arrays = (
        normal(B, queries, N, H, seed=seed),
        normal(B, S, key_heads, H, seed=seed + 1),
        normal(B, S, key_heads, H, seed=seed + 2),
    )
    rng = np.random.default_rng(seed + 3)
    rule = {}
    if draw(st.booleans()):
        rule["query_positions"] = rng.integers(-1, S, (B, queries), "int32")
    if draw(st.booleans()):
        rule["key_positions"] = rng.integers(-1, S, (B, S), "int32")
    if draw(st.booleans()):
        density = draw(st.sampled_from([0.0, 0.3, 0.9]))
        shape = draw(st.sampled_from([(B, N), (B, 1), (1, N), (1, 1)]))
        mask = rng.random((*shape, queries, S)) < density
        rule["attention_mask"] = mask
    static = {
        "causal": draw(st.booleans()),
        "strict": draw(st.booleans()),
        "window": draw(st.sampled_from([None, 1, 3])),
    }
    see = Visibility(
        **{name: ops.convert_to_tensor(x) for name, x in rule.items()},
        **static,
    )
    mask = reference.visible(B, queries, S, heads=N, **rule, **static)
    return arrays, see, mask


@pytest.mark.every_backend
@few
@hypothesis.given(calls(), st.sampled_from(KERNELS))
def test_matches_loop(call, kernel):
    arrays, see, mask = call
    tensors = [ops.convert_to_tensor(array) for array in arrays]
    output = values(attend(*tensors, see, kernel=kernel))
    expected, _ = reference.scaled_dot_attention(*arrays, mask)
    assert_close(output, expected)
    empty = ~mask.any(-1).swapaxes(1, 2)
    assert (output[empty] == 0).all()


@pytest.mark.every_backend
@few
@hypothesis.given(
    calls(),
    st.sampled_from(KERNELS),
    st.sampled_from(["bfloat16", "float16"]),
)
def test_half_precision_is_close_to_loop(call, kernel, dtype):
    arrays, see, mask = call
    tensors = [ops.cast(array, dtype) for array in arrays]
    output = values(attend(*tensors, see, kernel=kernel))
    expected, _ = reference.scaled_dot_attention(
        *(values(x) for x in tensors), mask
    )
    assert_close(output, expected, 3e-2)
    assert (output[~mask.any(-1).swapaxes(1, 2)] == 0).all()


@few
@hypothesis.given(
    st.lists(st.booleans(), min_size=S, max_size=S).filter(any),
    st.booleans(),
    st.sampled_from([None, 2]),
    st.sampled_from(KERNELS),
)
def test_padding_changes_nothing(token_mask, causal, window, kernel):
    """Tokens with padding in between match the same tokens alone."""
    token_mask = np.array(token_mask)
    arrays = [normal(1, S, N, H, seed=seed) for seed in range(3)]
    mask = ops.convert_to_tensor(token_mask[None])
    see = make_visibility(
        S, S, query_mask=mask, key_mask=mask, causal=causal, window=window
    )
    poisoned = [array.copy() for array in arrays]
    for array in poisoned:
        array[:, ~token_mask] = np.nan
    padded = attend(
        *(ops.convert_to_tensor(x) for x in poisoned), see, kernel=kernel
    )
    count = int(token_mask.sum())
    alone, _ = reference.scaled_dot_attention(
        *(array[:, token_mask] for array in arrays),
        reference.visible(1, count, count, causal=causal, window=window),
    )
    assert_close(values(padded)[:, token_mask], alone)
    assert (values(padded)[:, ~token_mask] == 0).all()


@few
@hypothesis.given(
    st.integers(0, S - 1),
    st.booleans(),
    st.sampled_from([None, 2]),
    st.sampled_from(KERNELS),
)
def test_future_tokens_change_nothing(token, padded, window, kernel):
    arrays = [normal(B, S, N, H, seed=seed) for seed in range(3)]
    mask = None
    if padded:
        mask = ops.convert_to_tensor([[False] + [True] * (S - 1)] * B)
    see = make_visibility(
        S, S, query_mask=mask, key_mask=mask, causal=True, window=window
    )
    before = values(
        attend(*(ops.convert_to_tensor(x) for x in arrays), see, kernel=kernel)
    )
    for array in arrays:
        array[:, token] += 1
    after = values(
        attend(*(ops.convert_to_tensor(x) for x in arrays), see, kernel=kernel)
    )
    assert_close(after[:, :token], before[:, :token], 1e-6)
    if not padded or token:
        assert (after[:, token] != before[:, token]).any()


@few
@hypothesis.given(calls(), st.sampled_from(KERNELS))
def test_rows_are_independent(call, kernel):
    arrays, see, _ = call
    before = values(
        attend(*(ops.convert_to_tensor(x) for x in arrays), see, kernel=kernel)
    )
    changed = [np.concatenate([x[:1], 3 * x[1:]]) for x in arrays]
    after = values(
        attend(*(ops.convert_to_tensor(x) for x in changed), see, kernel=kernel)
    )
    assert_close(after[0], before[0], 1e-6)


@pytest.mark.every_backend
@few
@hypothesis.given(calls())
def test_kernels_agree(call):
    arrays, see, _ = call
    tensors = [ops.convert_to_tensor(array) for array in arrays]
    first, *others = (
        values(attend(*tensors, see, kernel=kernel)) for kernel in KERNELS
    )
    weighted, _ = attend(*tensors, see, return_weights=True)
    for other in (*others, values(weighted)):
        assert_close(other, first)
