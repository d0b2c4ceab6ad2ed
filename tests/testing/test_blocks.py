"""Our blocks pass `check_block`; wrong blocks fail the right check."""

import keras
import pytest
from keras import ops

from keras_attn import blocks, cache
from keras_attn.testing import BLOCK_CHECKS, CheckFailure, check_block
from tests.helpers.cases import once

SIZES = {"num_heads": 2, "intermediate_dim": 12, "dropout": 0.1}
NOT_CAUSAL = ("causality", "cached_decoding")


def decode(block, x, memory=None):
    """Decodes with the caches of a `DecoderBlock`."""
    rows, length, width = x.shape
    seen = ()
    if memory is not None:
        positions = ops.broadcast_to(
            ops.arange(memory.shape[1], dtype="int32"), memory.shape[:2]
        )
        keys, values = block.project_memory(memory, positions)
        seen = cache.from_projections([keys], [values], positions)
    slots = cache.empty(rows, length, 1, 2, width // 2, width // 2, "float32")
    found = []
    for index in range(length):
        positions, slots = cache.open_slots(slots, 1)
        step = cache.DecodingStep(positions, seen)
        token = x[:, index : index + 1]
        output, slots = block.decode_step(token, slots, 0, step)
        slots = cache.close_slots(slots, 1)
        found.append(output)
    return ops.concatenate(found, axis=1)


BLOCKS = {
    "decoder with memory": (
        blocks.DecoderBlock,
        {"causal": True, "memory": True, "decode": decode},
        (),
    ),
    "decoder": (
        blocks.DecoderBlock,
        {"causal": True, "decode": decode},
        (),
    ),
    "encoder": (blocks.EncoderBlock, {}, NOT_CAUSAL),
    "segment": (
        blocks.SegmentBlock,
        {"causal": True},
        ("cached_decoding",),
    ),
    "two streams": (blocks.TwoStreamBlock, {}, NOT_CAUSAL),
}


# The second case runs on JAX too, where each block compiles many programs.
first, second, *others = BLOCKS


@pytest.mark.every_backend
@pytest.mark.parametrize("name", [*once([first]), second, *once(others)])
def test_our_blocks_pass(name):
    kind, arguments, without = BLOCKS[name]
    ran = check_block(kind(**SIZES), **arguments)
    assert ran == tuple(n for n in BLOCK_CHECKS if n not in without)


class Wrong(keras.layers.Layer):
    """A dense layer, of which subclasses replace a part."""

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.supports_masking = True

    def build(self, inputs_shape):
        self.dense = keras.layers.Dense(
            inputs_shape[-1], dtype=self.dtype_policy
        )
        self.dense.build(inputs_shape)

    def call(self, inputs):
        return self.dense(self.mixed(inputs))

    def mixed(self, x):
        return x


class AveragesAllTokens(Wrong):
    def mixed(self, x):
        return x - ops.mean(x, axis=1, keepdims=True)


class SumsFromTheEnd(Wrong):
    """Right-to-left sums: causal in the wrong direction."""

    def call(self, inputs, mask=None):
        if mask is not None:
            inputs = inputs * ops.cast(mask, inputs.dtype)[..., None]
        sums = ops.flip(ops.cumsum(ops.flip(inputs, 1), axis=1), 1)
        return self.dense(sums)


class NormalizesTheBatch(Wrong):
    def mixed(self, x):
        return x - ops.mean(x, axis=(0, 1), keepdims=True)


class ReadsAllOfTheMemory(Wrong):
    def build(self, inputs_shape, memory_shape):
        super().build(inputs_shape)

    def call(self, inputs, memory):
        return self.dense(inputs + ops.mean(memory, axis=1, keepdims=True))


class DividesByTokens(Wrong):
    """A masked mean: NaN for a row that is all padding."""

    def call(self, inputs, mask=None):
        if mask is None:
            mask = ops.ones(ops.shape(inputs)[:2], "bool")
        weights = ops.cast(mask, inputs.dtype)[..., None]
        mean = ops.sum(inputs * weights, axis=1, keepdims=True)
        mean = mean / ops.sum(weights, axis=1, keepdims=True)
        return self.dense(inputs + mean)


ONE = {"inputs": (1, 1, 8)}
WRONG = {
    AveragesAllTokens: ("padding_invariance", {}, ONE),
    SumsFromTheEnd: ("causality", {"causal": True}, {"inputs": (1, 2, 8)}),
    NormalizesTheBatch: ("batch_invariance", {}, {"inputs": (2, 1, 8)}),
    ReadsAllOfTheMemory: (
        "padding_invariance",
        {"memory": True},
        ONE | {"memory": (1, 1, 8)},
    ),
    DividesByTokens: ("fully_masked_rows", {}, ONE),
}


@pytest.mark.parametrize("kind", WRONG)
def test_a_wrong_block_fails_its_check(kind):
    name, arguments, shapes = WRONG[kind]
    with pytest.raises(CheckFailure) as caught:
        check_block(kind(), except_for=("zero_length_axes",), **arguments)
    assert (caught.value.check, caught.value.shapes) == (name, shapes)


def test_a_wrong_position_in_decoding_is_detected():
    def without_memory_mask(block, x, memory):
        return decode(block, x, memory[:, :1])

    with pytest.raises(CheckFailure) as caught:
        check_block(
            blocks.DecoderBlock(**SIZES),
            only=("cached_decoding",),
            causal=True,
            memory=True,
            decode=without_memory_mask,
        )
    assert caught.value.shapes == {"inputs": (1, 1, 8), "memory": (1, 2, 8)}
