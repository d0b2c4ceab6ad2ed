"""`SegmentBlock` against a `DecoderBlock` over past and segment."""

import numpy as np
import pytest
from keras import ops

from keras_attn.blocks import DecoderBlock, SegmentBlock
from keras_attn.layers import (
    ALiBiPosition,
    RotaryPosition,
    TransformerXLPosition,
)
from tests.helpers.contract import attach_mask, check_layer, randomize
from tests.helpers.ops_cases import assert_close, assert_differs, normal, values
from tests.helpers.weight_gradients import layer_gradients, weighted_sum

B, T, M, D, N = 2, 4, 3, 8, 2
X, PAST = normal(B, T, D, seed=1), normal(B, M, D, seed=2)
WHOLE = np.concatenate([PAST, X], axis=1)
POSITIONS = {
    "transformer-xl": lambda: TransformerXLPosition(N, D // N),
    "rotary": RotaryPosition,
    "alibi": lambda: ALiBiPosition(N),
    "none": lambda: None,
}
every_position = pytest.mark.parametrize("name", POSITIONS)


def make(name="transformer-xl", kind=SegmentBlock, **kwargs):
    block = kind(
        num_heads=N,
        intermediate_dim=12,
        attention_position=POSITIONS[name](),
        **kwargs,
    )
    block.build((None, None, D))
    return randomize(block)


@pytest.mark.parametrize("normalize_first", [False, True])
def test_layer_contract(normalize_first):
    check_layer(
        lambda **kwargs: SegmentBlock(
            num_heads=N,
            intermediate_dim=12,
            attention_position=TransformerXLPosition(N, D // N),
            normalize_first=normalize_first,
            **kwargs,
        ),
        X,
    )


@pytest.mark.every_backend
@every_position
@pytest.mark.parametrize("normalize_first", [False, True])
def test_past_matches_one_long_segment(name, normalize_first):
    block = make(name, normalize_first=normalize_first)
    expected = values(block(WHOLE))[:, M:]
    assert_close(values(block(X, past=PAST)), expected)
    assert_differs(values(block(X)), expected)


@every_position
def test_without_past_matches_decoder_block(name):
    """With zero biases in the decoder block's projections."""
    block, other = make(name), make(name, DecoderBlock)

    def name_of(weight):
        # Path relative to the block or to its attention position.
        return weight.path.partition("/")[2]

    ours = {name_of(weight): weight for weight in block.weights}
    for weight in other.weights:
        found = ours.pop(name_of(weight), None)
        weight.assign(np.zeros(weight.shape) if found is None else found)
    assert not ours
    assert_close(values(block(X)), values(other(X)))


def test_masked_tokens_in_past_and_segment():
    block = make()
    past_mask = np.array([[0, 0, 1], [1, 1, 1]], "bool")
    mask = np.array([[1, 1, 1, 1], [1, 1, 0, 0]], "bool")
    poisoned = [
        np.where(token_mask[..., None], x, np.nan).astype("float32")
        for x, token_mask in ((PAST, past_mask), (X, mask))
    ]
    past, x = poisoned
    found = values(block(x, past=past, mask=mask, past_mask=past_mask))
    assert_close(found[0], values(block(X[:1], past=PAST[:1, 2:]))[0])
    short = values(block(X[1:, :2], past=PAST[1:]))
    assert_close(found[1, :2], short[0])
    implicit = block(
        attach_mask(ops.convert_to_tensor(x), mask),
        past=past,
        past_mask=past_mask,
    )
    assert_close(values(implicit), found, 0)
    # With only one of the two masks.
    found = values(block(X, past=past, past_mask=past_mask))
    assert_close(found[1], values(block(X[1:], past=PAST[1:]))[0])


def test_documents_do_not_see_each_other():
    block = make()
    segments = np.int32([[0, 0, 1, 1], [1, 1, 1, 2]])
    past_segment_ids = np.int32([[0, 0, 0], [0, 0, 0]])
    found = values(
        block(
            X,
            past=PAST,
            segment_ids=segments,
            past_segment_ids=past_segment_ids,
        )
    )
    for row, start, end, past in (
        (0, 0, 2, PAST[:1]),
        (0, 2, 4, None),
        (1, 0, 3, None),
        (1, 3, 4, None),
    ):
        alone = values(block(X[row : row + 1, start:end], past=past))
        assert_close(found[row, start:end], alone[0])


@pytest.mark.every_backend
def test_gradients_match_one_long_segment():
    block = make()
    upstream = normal(B, T, D, seed=4)
    zeros = np.zeros_like(PAST)
    padded = np.concatenate([zeros, upstream], axis=1)
    (at_x, at_past), at_weights = layer_gradients(
        block,
        lambda x, past: weighted_sum(block(x, past=past), upstream),
        X,
        PAST,
    )
    (at_whole,), expected = layer_gradients(
        block, lambda x: weighted_sum(block(x), padded), WHOLE
    )
    assert_close(at_x, at_whole[:, M:], 2e-5)
    assert_close(at_past, at_whole[:, :M], 2e-5)
    for name, array in expected.items():
        assert_close(at_weights[name], array, 5e-5)


@pytest.mark.parametrize(
    ("inputs", "arguments", "message"),
    [
        (X[0], {}, "`inputs` must have rank 3"),
        (X, {"past": PAST[0]}, "`past` must have rank 3"),
        (
            X,
            {"past": PAST, "segment_ids": np.zeros((B, T), "int32")},
            "Received: past_segment_ids=None",
        ),
    ],
)
def test_invalid_inputs_raise(inputs, arguments, message):
    with pytest.raises(ValueError, match=message):
        make()(inputs, **arguments)
