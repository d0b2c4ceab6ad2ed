"""`TwoStreamBlock`: queries attend to the content, never the reverse."""

import numpy as np
import pytest
from keras import ops

from keras_attn.blocks import DecoderBlock, EncoderBlock, TwoStreamBlock
from keras_attn.layers import XLNetPosition
from keras_attn.ops import Visibility
from tests.helpers.contract import attach_mask, check_layer, randomize
from tests.helpers.ops_cases import assert_close, assert_differs, normal, values

B, T, D, N = 2, 5, 8, 2
X, QUERIES, PAST = (normal(B, n, D, seed=n) for n in (T, T, 3))
CAUSAL = {"content_visibility": Visibility(causal=True)}
STRICT = CAUSAL | {"query_visibility": Visibility(causal=True, strict=True)}


def make(kind=TwoStreamBlock, position=True, **kwargs):
    position = XLNetPosition(N, D // N) if position else None
    block = kind(
        num_heads=N, intermediate_dim=12, attention_position=position, **kwargs
    )
    block.build((None, None, D))
    return randomize(block)


def same_weights(block, other):
    """Copies weights to a block with biases, whose biases become zero."""
    ours = {w.path.partition("/")[2]: w for w in block.weights}
    for weight in other.weights:
        found = ours.pop(weight.path.partition("/")[2], None)
        weight.assign(np.zeros(weight.shape) if found is None else found)
    assert not ours


def test_layer_contract():
    check_layer(
        lambda **kwargs: TwoStreamBlock(
            num_heads=N,
            intermediate_dim=12,
            attention_position=XLNetPosition(N, D // N),
            **kwargs,
        ),
        X,
    )


@pytest.mark.every_backend
@pytest.mark.parametrize("normalize_first", [False, True])
def test_content_matches_encoder_or_decoder_block(normalize_first):
    block = make(normalize_first=normalize_first)
    for kind, arguments in ((EncoderBlock, {}), (DecoderBlock, CAUSAL)):
        other = make(kind, normalize_first=normalize_first)
        same_weights(block, other)
        assert_close(values(block(X, **arguments)), values(other(X)))


@pytest.mark.parametrize("normalize_first", [False, True])
def test_queries_do_not_affect_other_outputs(normalize_first):
    block = make(normalize_first=normalize_first)
    content, queries = block(X, queries=QUERIES, **STRICT)
    assert_close(values(content), values(block(X, **CAUSAL)), 0)
    other = QUERIES.copy()
    other[:, 2] += 1
    again, moved = block(X, queries=other, **STRICT)
    assert_close(values(again), values(content), 0)
    changed = np.abs(values(moved) - values(queries)).max((0, 2)) > 1e-5
    assert changed.tolist() == [False, False, True, False, False]


def test_streams_match_for_equal_inputs_and_visibility():
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


@pytest.mark.every_backend
def test_past_matches_one_long_segment():
    block = make()
    whole = np.concatenate([PAST, X], axis=1)
    assert_close(values(block(X, past=PAST)), values(block(whole))[:, 3:])


def test_implicit_mask_is_used():
    block = make()
    mask = np.array([[1, 1, 1, 0, 0], [1, 1, 1, 1, 1]], "bool")
    found = values(block(attach_mask(ops.convert_to_tensor(X), mask)))
    assert_close(found[0, :3], values(block(X[:1, :3]))[0])
    assert_close(found[1], values(block(X[1:]))[0])


def test_window_applies_to_both_streams():
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
    ("arguments", "message"),
    [
        ({"queries": QUERIES}, "`query_visibility` is required"),
        ({"queries": QUERIES[0], **STRICT}, "`queries` must have rank 3"),
        ({"past": PAST[0]}, "`past` must have rank 3"),
    ],
)
def test_invalid_inputs_raise(arguments, message):
    with pytest.raises(ValueError, match=message):
        make()(X, **arguments)
