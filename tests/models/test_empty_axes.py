"""No rows, no queries and no keys: empty results, and zeros without keys."""

import numpy as np
import pytest
from keras import ops

from keras_attn import blocks, layers
from keras_attn.ops import (
    Visibility,
    attend,
    attention_plan,
    packed_positions,
    positions_from_mask,
)
from keras_attn.training import Perplexity, SequenceCrossentropy, TokenAccuracy
from tests.helpers.weight_gradients import layer_gradients

BLOCK = {"num_heads": 2, "intermediate_dim": 12, "dropout": 0.1}
# Rows, queries and keys.
SIZES = [(0, 3, 4), (2, 0, 4), (2, 3, 0), (2, 0, 0)]


def ones(*shape, dtype="float32"):
    return ops.convert_to_tensor(np.ones(shape, dtype))


def attention(**arguments):
    return layers.MultiHeadAttention(2, 4, dropout=0.1, **arguments)


# Layers of queries (B, T, 8) and keys (B, S, 8).
PAIRS = {
    "MultiHeadAttention": attention,
    "causal window": lambda: attention(causal=True, sliding_window=2),
    "ALiBiPosition": lambda: attention(
        attention_position=layers.ALiBiPosition(2)
    ),
    "RotaryPosition": lambda: attention(
        attention_position=layers.RotaryPosition()
    ),
    "T5Position": lambda: attention(
        attention_position=layers.T5Position(2, 8, 6)
    ),
    "TransformerXLPosition": lambda: attention(
        attention_position=layers.TransformerXLPosition(2, 4)
    ),
    "XLNetPosition": lambda: attention(
        attention_position=layers.XLNetPosition(2, 4)
    ),
    "grouped heads": lambda: attention(num_key_value_heads=1),
    "ScoredAttention": layers.ScoredAttention,
    "additive": lambda: layers.ScoredAttention("additive"),
    "gumbel": lambda: layers.ScoredAttention(hard="gumbel"),
    "reinforce": lambda: layers.ScoredAttention(hard="reinforce"),
    "monotonic": lambda: layers.ScoredAttention(local="monotonic"),
    "predictive": lambda: layers.ScoredAttention(local="predictive"),
}


@pytest.mark.parametrize("sizes", SIZES)
@pytest.mark.parametrize("name", PAIRS)
def test_attention_layers(name, sizes):
    rows, queries, keys = sizes
    layer = PAIRS[name]()
    x, y = ones(rows, queries, 8), ones(rows, keys, 8)
    # Built on other sizes: initial weights do not depend on them.
    layer(ones(1, 2, 8), ones(1, 3, 8))
    output, weights = layer(x, y, return_attention_scores=True, training=True)
    assert output.shape == (rows, queries, 8)
    assert weights.shape[0] == rows and weights.shape[-2:] == sizes[1:]
    np.testing.assert_array_equal(ops.convert_to_numpy(output), 0)
    masks = {
        "query_mask": ones(rows, queries, dtype="bool"),
        "value_mask": ones(rows, keys, dtype="bool"),
    }
    assert layer(x, y, **masks).shape == (rows, queries, 8)


@pytest.mark.every_backend
@pytest.mark.parametrize("sizes", SIZES)
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("kernel", [None, "plain", "fused", "blockwise"])
def test_kernels(kernel, causal, sizes):
    rows, queries, keys = sizes
    see = Visibility(
        causal=causal,
        query_positions=ones(rows, queries, dtype="int32"),
        key_positions=ones(rows, keys, dtype="int32"),
        padding="any",
    )
    if kernel == "fused":
        x = ones(1, 2, 2, 4)
        try:
            attention_plan(x, x, Visibility(), kernel=kernel)
        except ValueError:
            pytest.skip("this backend has no fused kernel on a CPU")
    query, key = ones(rows, queries, 2, 4), ones(rows, keys, 1, 4)
    output = attend(query, key, key, see, kernel=kernel)
    assert output.shape == (rows, queries, 2, 4)
    np.testing.assert_array_equal(ops.convert_to_numpy(output), 0)


BLOCKS = {
    "EncoderBlock": (blocks.EncoderBlock, ()),
    "DecoderBlock": (blocks.DecoderBlock, (ones(2, 3, 8),)),
    "SegmentBlock": (blocks.SegmentBlock, (ones(2, 3, 8),)),
    "TwoStreamBlock": (blocks.TwoStreamBlock, ()),
}


@pytest.mark.parametrize("rows, length", [(0, 3), (2, 0)])
@pytest.mark.parametrize("name", BLOCKS)
def test_blocks(name, rows, length):
    kind, others = BLOCKS[name]
    others = [x[:rows] for x in others]
    block = kind(**BLOCK)
    block(ones(1, 2, 8), *[x[:1] for x in (ones(2, 3, 8),) if others])
    output = block(ones(rows, length, 8), *others, training=True)
    assert output.shape == (rows, length, 8)


def test_blocks_without_keys_elsewhere():
    """An empty memory and an empty past."""
    decoder = blocks.DecoderBlock(num_heads=2, intermediate_dim=12)
    assert decoder(ones(2, 3, 8), ones(2, 0, 8)).shape == (2, 3, 8)
    segment = blocks.SegmentBlock(num_heads=2, intermediate_dim=12)
    x = ones(2, 3, 8)
    np.testing.assert_allclose(
        ops.convert_to_numpy(segment(x, ones(2, 0, 8))),
        ops.convert_to_numpy(segment(x)),
        atol=1e-6,
    )


LAYERS = {
    "TokenEmbedding": lambda: layers.TokenEmbedding(12, 8),
    "CharacterEmbedding": lambda: layers.CharacterEmbedding(12, 8),
    "Dropout": lambda: layers.Dropout(0.5),
    "FeedForward": lambda: layers.FeedForward(4, dropout=0.5),
    "PositionalEmbedding": layers.PositionalEmbedding,
    "learned": lambda: layers.PositionalEmbedding(
        "learned", max_sequence_length=4
    ),
}


@pytest.mark.parametrize("rows, length", [(0, 3), (2, 0)])
@pytest.mark.parametrize("name", LAYERS)
def test_other_layers(name, rows, length):
    x = ones(rows, length, 8)
    if name == "TokenEmbedding":
        x = ones(rows, length, dtype="int32")
    elif name == "CharacterEmbedding":
        x = ones(rows, length, 5, dtype="int32")
    assert LAYERS[name]()(x).shape == (rows, length, 8)


def test_words_without_characters():
    layer = layers.CharacterEmbedding(12, 8)
    found = layer(ones(2, 3, 0, dtype="int32"))
    np.testing.assert_array_equal(
        ops.convert_to_numpy(found), np.zeros((2, 3, 8))
    )


def test_no_images_and_no_choices():
    sensor = layers.GlimpseSensor(2, num_patches=2)
    assert sensor(ones(0, 4, 4, 1), ones(0, 2)).shape == (0, 2, 2, 2, 1)
    learner = layers.Reinforce("mse")
    empty = ones(0, 4)
    assert learner(empty, empty, ones(0, 3), training=True).shape == (0, 4)
    assert float(ops.convert_to_numpy(learner.baseline)) == 0


@pytest.mark.parametrize("rows, length", [(0, 3), (2, 0)])
def test_losses_and_metrics(rows, length):
    labels, logits = ones(rows, length, dtype="int32"), ones(rows, length, 5)
    for loss in (SequenceCrossentropy(), SequenceCrossentropy(0.1)):
        assert float(ops.convert_to_numpy(loss(labels, logits))) == 0
    for metric in (TokenAccuracy(), Perplexity()):
        metric.update_state(labels, logits)
        assert np.isfinite(float(metric.result()))


@pytest.mark.parametrize("rows, length", [(0, 3), (2, 0)])
def test_positions(rows, length):
    mask = ones(rows, length, dtype="bool")
    ids = ones(rows, length, dtype="int32")
    for found in (
        positions_from_mask(mask),
        packed_positions(ids),
        packed_positions(ids, mask),
    ):
        assert found.shape == (rows, length)


@pytest.mark.parametrize("sizes", SIZES)
def test_gradients(sizes):
    rows, queries, keys = sizes
    layer = layers.MultiHeadAttention(2, 4)
    layer(ones(1, 2, 8), ones(1, 3, 8))

    def loss():
        output = layer(ones(rows, queries, 8), ones(rows, keys, 8))
        return ops.sum(ops.square(output))

    _, gradients = layer_gradients(layer, loss)
    assert len(gradients) == len(layer.trainable_weights)
    for name, gradient in gradients.items():
        np.testing.assert_array_equal(gradient, 0, err_msg=name)
