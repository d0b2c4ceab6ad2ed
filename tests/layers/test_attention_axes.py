"""Attention over any axes, compared with loops over the slices."""

import numpy as np
import pytest
from keras import ops

from keras_attn.layers import MultiHeadAttention
from keras_attn.layers.attention_axes import AttentionAxes
from tests.helpers import reference
from tests.helpers.contract import attach_mask, randomize
from tests.helpers.ops_cases import assert_close, assert_differs, normal, values

X4, X5 = normal(2, 3, 4, 6, seed=7), normal(2, 3, 2, 4, 6, seed=8)
RANDOM = np.random.default_rng(4)


def make(x, axes, **kwargs):
    layer = MultiHeadAttention(2, 3, attention_axes=axes, **kwargs)
    layer.build(x.shape, x.shape)
    return randomize(layer)


def expected_of(layer, x, axes, mask=None):
    """Moves the attention axes last and folds the others, in NumPy."""
    last = tuple(range(-1 - len(axes), -1))
    moved = np.moveaxis(x, axes, last)
    rows = int(np.prod(moved.shape[: last[0]]))
    output, weights = reference.multi_head_attention(
        moved.reshape(rows, -1, x.shape[-1]),
        moved.reshape(rows, -1, x.shape[-1]),
        layer.get_weights(),
        mask=mask,
    )
    lengths = moved.shape[last[0] : -1]
    weights = weights.reshape(*moved.shape[: last[0]], -1, *lengths, *lengths)
    return np.moveaxis(output.reshape(moved.shape), last, axes), weights


@pytest.mark.every_backend
@pytest.mark.parametrize(
    ("x", "axes"),
    [
        (X4, (2,)),
        (X4, (1, 2)),
        (X5, (2,)),
        (X5, (1, 3)),
    ],
)
def test_output_and_weights(x, axes):
    layer = make(x, axes)
    output, weights = layer(x, x, return_attention_scores=True)
    expected, expected_weights = expected_of(layer, x, axes)
    assert_close(values(output), expected)
    assert_close(values(weights), expected_weights)


def test_negative_axes_count_from_the_back():
    layer = make(X5, (-4, -2))
    assert layer.attention_axes == (1, 3)
    assert_close(values(layer(X5, X5)), expected_of(layer, X5, (1, 3))[0])


def test_default_is_all_axes():
    layer = make(X4, None)
    assert layer.attention_axes == (1, 2)
    assert_close(values(layer(X4, X4)), expected_of(layer, X4, (1, 2))[0])


@pytest.mark.every_backend
@pytest.mark.parametrize("axes", [(1,), (2,)])
@pytest.mark.parametrize("implicit", [False, True])
def test_masks(axes, implicit):
    """A different mask per slice, and causal within the slice."""
    layer = make(X4, axes)
    token_mask = RANDOM.random(X4.shape[:3]) < 0.7
    if implicit:
        x = attach_mask(ops.convert_to_tensor(X4), token_mask)
        output = values(layer(x, x, use_causal_mask=True))
    else:
        output = values(
            layer(
                X4,
                X4,
                query_mask=token_mask,
                value_mask=token_mask,
                use_causal_mask=True,
            )
        )
    length = X4.shape[axes[0]]
    folded = np.moveaxis(token_mask, axes[0], -1).reshape(-1, length)
    lower = reference.visible(1, length, length, causal=True)
    mask = lower & folded[:, None, None] & folded[:, None, :, None]
    assert_close(output, expected_of(layer, X4, axes, mask)[0])
    assert_differs(output, expected_of(layer, X4, axes, lower)[0])


@pytest.mark.parametrize("axes", [(1,), (2,)])
def test_positions(axes):
    """Positions have the same axes as a mask."""
    layer = make(X4, axes, causal=True)
    positions = RANDOM.integers(-1, 4, X4.shape[:3], "int32")
    output = layer(X4, X4, query_positions=positions, key_positions=positions)
    length = X4.shape[axes[0]]
    folded = np.moveaxis(positions, axes[0], -1).reshape(-1, length)
    mask = reference.visible(
        len(folded),
        length,
        length,
        query_positions=folded,
        key_positions=folded,
        causal=True,
    )
    assert_close(values(output), expected_of(layer, X4, axes, mask)[0])


def test_causal_attention_requires_one_axis():
    with pytest.raises(ValueError, match="exactly one attention axis"):
        make(X4, None)(X4, X4, use_causal_mask=True)


def test_invalid_masks_raise():
    layer = make(X4, (1,))
    with pytest.raises(ValueError, match="`attention_mask` must have rank 4"):
        layer(X4, X4, attention_mask=np.ones((3, 3), "bool"))
    with pytest.raises(ValueError, match="`query_mask` must have the shape"):
        layer(X4, X4, query_mask=np.ones((2, 3), "bool"))
    with pytest.raises(ValueError, match="`query_positions` must have the"):
        layer(X4, X4, query_positions=np.ones((2, 3), "int32"))


@pytest.mark.parametrize("axes", [(1,), (2,), (1, 2), (1, 3), (2, 3)])
def test_unfold_inverts_fold(axes):
    folding = AttentionAxes(rank=5, axes=axes)
    x = ops.convert_to_tensor(X5)
    folded = folding.fold(x)
    assert len(folded.shape) == 3
    assert_close(values(folding.unfold(folded, like=x)), X5, 0)


@pytest.mark.parametrize("axes", [(0,), (3,), (1, 4), (-1,)])
def test_invalid_axes_raise(axes):
    with pytest.raises(ValueError, match="`attention_axes` must lie between"):
        AttentionAxes(rank=4, axes=axes)
