"""TwoStreamBlock: queries look at the content, and nothing at them."""

import numpy as np
import pytest
from keras import ops

from keras_attn.blocks import DecoderBlock, EncoderBlock, TwoStreamBlock
from keras_attn.layers import XLNetPosition
from keras_attn.ops import Visibility
from tests.contract import attach_mask, check_layer, randomize
from tests.ops.cases import assert_close, assert_differs, normal, values

B, T, D, N = 2, 5, 8, 2
X, QUERIES, PAST = (normal(B, n, D, seed=n) for n in (T, T, 3))
CAUSAL = {"content_visibility": Visibility(causal=True)}
STRICT = CAUSAL | {"query_visibility": Visibility(causal=True, strict=True)}


def make(kind=TwoStreamBlock, position=True, **kwargs):
    where = XLNetPosition(N, D // N) if position else None
    block = kind(
        num_heads=N, intermediate_dim=12, attention_position=where, **kwargs
    )
    block.build((None, None, D))
    return randomize(block)


def same_weights(block, other):
    """Gives a block with biases the weights of one without, and zeros."""
    ours = {w.path.partition("/")[2]: w for w in block.weights}
    for weight in other.weights:
        found = ours.pop(weight.path.partition("/")[2], None)
        weight.assign(np.zeros(weight.shape) if found is None else found)
    assert not ours


def test_the_contract():
    check_layer(
        lambda **kwargs: TwoStreamBlock(
            num_heads=N,
            intermediate_dim=12,
            attention_position=XLNetPosition(N, D // N),
            **kwargs,
        ),
        X,
    )


@pytest.mark.parametrize("normalize_first", [False, True])
def test_content_alone_is_an_encoder_block_or_a_decoder_block(normalize_first):
    block = make(normalize_first=normalize_first)
    for kind, arguments in ((EncoderBlock, {}), (DecoderBlock, CAUSAL)):
        other = make(kind, normalize_first=normalize_first)
        same_weights(block, other)
        assert_close(values(block(X, **arguments)), values(other(X)))


@pytest.mark.parametrize("normalize_first", [False, True])
def test_queries_change_nothing_but_themselves(normalize_first):
    block = make(normalize_first=normalize_first)
    content, queries = block(X, queries=QUERIES, **STRICT)
    assert_close(values(content), values(block(X, **CAUSAL)), 0)
    other = QUERIES.copy()
    other[:, 2] += 1
    again, moved = block(X, queries=other, **STRICT)
    assert_close(values(again), values(content), 0)
    changed = np.abs(values(moved) - values(queries)).max((0, 2)) > 1e-5
    assert changed.tolist() == [False, False, True, False, False]


def test_queries_that_are_the_content_are_mixed_alike():
    """With the same sight, both streams are one computation."""
    block = make()
    content, queries = block(
        X,
        queries=X,
        content_visibility=Visibility(causal=True),
        query_visibility=Visibility(causal=True),
    )
    assert_close(values(queries), values(content))
    content, queries = block(X, queries=X, **STRICT)
    assert_differs(values(queries), values(content))


def test_the_past_is_seen():
    block = make()
    whole = np.concatenate([PAST, X], axis=1)
    assert_close(values(block(X, past=PAST)), values(block(whole))[:, 3:])


def test_an_implicit_mask_hides():
    block = make()
    mask = np.array([[1, 1, 1, 0, 0], [1, 1, 1, 1, 1]], "bool")
    found = values(block(attach_mask(ops.convert_to_tensor(X), mask)))
    assert_close(found[0, :3], values(block(X[:1, :3]))[0])
    assert_close(found[1], values(block(X[1:]))[0])


def test_a_window_is_obeyed_by_both_streams():
    block = make(sliding_window=2)
    content, queries = block(X, queries=QUERIES, **STRICT)
    changed = X.copy()
    changed[:, 0] += 1
    after = block(changed, queries=QUERIES, **STRICT)
    for one, other, reach in (
        (content, after[0], [True, True, False, False, False]),
        (queries, after[1], [False, True, False, False, False]),
    ):
        moved = np.abs(values(one) - values(other)).max((0, 2)) > 1e-5
        assert moved.tolist() == reach


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"queries": QUERIES}, "`query_visibility` must say what"),
        ({"queries": QUERIES[0], **STRICT}, "`queries` must have rank 3"),
        ({"past": PAST[0]}, "`past` must have rank 3"),
    ],
)
def test_bad_inputs(arguments, says):
    with pytest.raises(ValueError, match=says):
        make()(X, **arguments)
