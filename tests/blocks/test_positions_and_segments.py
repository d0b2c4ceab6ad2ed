"""Blocks with attention positions: padded, packed and cached inputs."""

import numpy as np
import pytest
from keras import ops

from keras_attn import cache as kv
from keras_attn.blocks import DecoderBlock, EncoderBlock
from keras_attn.layers import ALiBiPosition, RotaryPosition, T5Position
from tests.helpers.contract import check_layer, randomize
from tests.helpers.ops_cases import assert_close, assert_differs, normal, values
from tests.helpers.weight_gradients import layer_gradients, weighted_sum

B, T, S, D, N = 2, 6, 6, 8, 2
X, MEMORY = normal(B, T, D, seed=1), normal(B, S, D + 2, seed=2)
SEGMENTS = np.int32([[1, 1, 1, 2, 2, 2], [5, 5, 0, 6, 6, 6]])
MASK = np.array([[0, 1, 1, 1, 1, 1], [1, 1, 0, 1, 0, 1]], "bool")
MEMORY_SEGMENTS = np.int32([[2, 2, 2, 1, 1, 1], [5, 5, 5, 5, 6, 6]])
MEMORY_MASK = np.array([[1, 1, 1, 1, 1, 0], [1, 1, 0, 1, 1, 1]], "bool")
POSITIONS = {
    "none": lambda: None,
    "rotary": lambda: RotaryPosition(rotary_dim=2),
    "alibi": lambda: ALiBiPosition(N),
    "t5": lambda: T5Position(N, 8, 6),
}
every_position = pytest.mark.parametrize("name", POSITIONS)


def encoder(name, **kwargs):
    block = EncoderBlock(
        num_heads=N,
        intermediate_dim=12,
        attention_position=POSITIONS[name](),
        **kwargs,
    )
    block.build((None, None, D))
    return randomize(block)


def decoder(name, **kwargs):
    block = DecoderBlock(
        num_heads=N,
        intermediate_dim=12,
        attention_position=POSITIONS[name](),
        **kwargs,
    )
    block.build((None, None, D), (None, None, D + 2))
    return randomize(block)


def sentences():
    """Yields the row, slots and memory slots of each sentence."""
    for row, ids in enumerate(SEGMENTS):
        for segment in dict.fromkeys(ids[MASK[row]]):
            yield (
                row,
                np.flatnonzero(MASK[row] & (ids == segment)),
                np.flatnonzero(
                    MEMORY_MASK[row] & (MEMORY_SEGMENTS[row] == segment)
                ),
            )


@every_position
@pytest.mark.parametrize("window", [None, 2])
def test_packed_encoder_matches_separate_sentences(name, window):
    block = encoder(name, sliding_window=window)
    poisoned = np.where(MASK[..., None], X, np.nan).astype("float32")
    output = values(block(poisoned, mask=MASK, segment_ids=SEGMENTS))
    for row, slots, _ in sentences():
        alone = values(block(X[row : row + 1, slots]))
        assert_close(output[row : row + 1, slots], alone)
    assert_differs(values(block(X, mask=MASK))[MASK], output[MASK])


@every_position
def test_packed_decoder_matches_separate_sentences(name):
    block = decoder(name)
    call = {
        "mask": MASK,
        "memory_mask": MEMORY_MASK,
        "segment_ids": SEGMENTS,
        "memory_segment_ids": MEMORY_SEGMENTS,
    }
    output = values(block(X, MEMORY, **call))
    for row, slots, keys in sentences():
        alone = block(X[row : row + 1, slots], MEMORY[row : row + 1, keys])
        assert_close(output[row : row + 1, slots], values(alone))
    for name in ("segment_ids", "memory_segment_ids"):
        fewer = {key: call[key] for key in call if key != "memory_segment_ids"}
        if name == "segment_ids":
            fewer.pop("segment_ids")
        assert_differs(values(block(X, MEMORY, **fewer))[MASK], output[MASK])


def test_memory_without_segments_is_shared():
    """A memory without segment ids is visible to every sentence."""
    block = decoder("rotary")
    output = values(block(X, MEMORY, mask=MASK, segment_ids=SEGMENTS))
    for row, slots, _ in sentences():
        alone = block(X[row : row + 1, slots], MEMORY[row : row + 1])
        assert_close(output[row : row + 1, slots], values(alone))


@pytest.mark.every_backend
def test_packed_gradients_match_separate_sentences():
    block = decoder("t5", normalize_first=True)
    upstream = normal(B, T, D, seed=5) * MASK[..., None]

    def loss(x, memory):
        output = block(
            x,
            memory,
            mask=MASK,
            memory_mask=MEMORY_MASK,
            segment_ids=SEGMENTS,
            memory_segment_ids=MEMORY_SEGMENTS,
        )
        return weighted_sum(output, upstream)

    at_inputs, at_weights = layer_gradients(block, loss, X, MEMORY)
    total = {key: np.zeros_like(array) for key, array in at_weights.items()}
    for row, slots, keys in sentences():

        def alone(x, memory, upstream=upstream[row : row + 1, slots]):
            return weighted_sum(block(x, memory), upstream)

        found, parts = layer_gradients(
            block, alone, X[row : row + 1, slots], MEMORY[row : row + 1, keys]
        )
        for whole, part, indices in zip(
            at_inputs, found, (slots, keys), strict=True
        ):
            assert_close(whole[row : row + 1, indices], part)
        for key, array in parts.items():
            total[key] += array
    for key, array in at_weights.items():
        assert_close(array, total[key])
    assert any("table" in key for key in at_weights)


@pytest.mark.every_backend
@every_position
def test_cached_steps_match_full_pass(name):
    block = decoder(name, sliding_window=3)
    expected = values(block(X, MEMORY, memory_mask=MEMORY_MASK))
    memory_positions = np.where(MEMORY_MASK, np.arange(S), -1).astype("int32")
    memory_positions = ops.convert_to_tensor(memory_positions)
    keys, projected = block.project_memory(
        ops.convert_to_tensor(MEMORY), memory_positions
    )
    memory = kv.from_projections([keys], [projected], memory_positions)
    cache = kv.empty(B, T + 1, 1, N, D // N, D // N, "float32")
    outputs = []
    for start, count in ((0, 3), (3, 1), (4, 1), (5, 1)):
        positions, cache = kv.open_slots(cache, count)
        new = ops.convert_to_tensor(X[:, start : start + count])
        output, cache = block.decode_step(
            new, cache, 0, kv.DecodingStep(positions, memory)
        )
        cache = kv.close_slots(cache, count)
        outputs.append(values(output))
    assert_close(np.concatenate(outputs, axis=1), expected)


@every_position
def test_left_padding_and_position_offset_change_nothing(name):
    block = encoder(name)
    left = np.arange(T) >= np.array([[2], [0]])
    output = values(block(X, mask=left))
    alone = values(block(X[:1, 2:]))
    assert_close(output[:1, 2:], alone)
    shifted = np.where(left, 5_000 + np.arange(T), -1).astype("int32")
    assert_close(values(block(X, positions=shifted))[left], output[left])


@pytest.mark.parametrize("name", ["rotary", "alibi", "t5"])
def test_attention_position_changes_output(name):
    block, bare = encoder(name), encoder("none")
    pairs = {w.path.removeprefix(f"{block.path}/"): w for w in block.weights}
    for weight in bare.weights:
        weight.assign(pairs[weight.path.removeprefix(f"{bare.path}/")])
    assert_differs(values(block(X)), values(bare(X)))


@pytest.mark.parametrize("name", ["rotary", "t5"])
def test_layer_contract(name):
    check_layer(
        lambda **kwargs: EncoderBlock(
            num_heads=N,
            intermediate_dim=12,
            attention_position=POSITIONS[name](),
            **kwargs,
        ),
        X,
        {"segment_ids": SEGMENTS},
    )


def test_layer_contract_of_decoder():
    check_layer(
        lambda **kwargs: DecoderBlock(
            num_heads=N,
            intermediate_dim=12,
            attention_position=POSITIONS["t5"](),
            **kwargs,
        ),
        (X, MEMORY),
        {"segment_ids": SEGMENTS, "memory_segment_ids": MEMORY_SEGMENTS},
    )


def test_invalid_segment_ids_raise():
    with pytest.raises(ValueError, match="`memory_segment_ids` requires"):
        decoder("none")(X, MEMORY, memory_segment_ids=MEMORY_SEGMENTS)
    with pytest.raises(ValueError, match=r"segment_ids`.*integers"):
        encoder("none")(X, segment_ids=X[..., 0])
    with pytest.raises(ValueError, match=r"segment_ids`.*rank 2"):
        encoder("none")(X, segment_ids=SEGMENTS[0])
