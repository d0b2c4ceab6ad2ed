"""Cached decoding compared with the full pass."""

import numpy as np
import pytest
from keras import ops

from keras_attn import cache as kv
from keras_attn.backend import compiled
from keras_attn.layers import ALiBiPosition, MultiHeadAttention
from tests.helpers import reference
from tests.helpers.contract import randomize
from tests.helpers.ops_cases import assert_close, assert_differs, normal, values

B, T, S, D, N, H = 2, 5, 5, 6, 2, 3
X, MEMORY = normal(B, T, D, seed=1), normal(B, S, D + 1, seed=2)
LAYERS = [
    {},
    {"sliding_window": 3},
    {"use_gate": True, "num_key_value_heads": 1},
    # A new position per layer.
    {"attention_position": lambda: ALiBiPosition(N)},
]
every_layer = pytest.mark.parametrize("kwargs", LAYERS)


def make(width, attention_position=None, **kwargs):
    if attention_position is not None:
        kwargs["attention_position"] = attention_position()
    layer = MultiHeadAttention(N, H, **kwargs)
    layer.build((None, None, D), (None, None, width))
    return randomize(layer)


def empty(layer, rows=B, length=T, dtype="float32"):
    heads = layer.num_key_value_heads
    return kv.empty(rows, length, 1, heads, H, H, dtype)


def steps(layer, x, counts, cache, step=None):
    """Decodes `counts` tokens per step and concatenates the outputs."""
    step = _step(layer) if step is None else step
    outputs, start = [], 0
    for count in counts:
        new = ops.convert_to_tensor(x[:, start : start + count])
        output, cache = step(new, cache)
        outputs.append(values(output))
        start += count
    return np.concatenate(outputs, axis=1)


def _step(layer):
    def step(new, cache):
        count = new.shape[1]
        positions, cache = kv.open_slots(cache, count)
        output, cache = layer.decode_step(
            new, cache, 0, kv.DecodingStep(positions)
        )
        return output, kv.close_slots(cache, count)

    return step


@pytest.mark.every_backend
@every_layer
@pytest.mark.parametrize("counts", [[1] * T, [3, 1, 1]])
def test_equals_the_full_pass(kwargs, counts):
    layer = make(D, **kwargs)
    output = steps(layer, X, counts, empty(layer))
    assert_close(output, values(layer(X, X, use_causal_mask=True)))
    assert_differs(output, values(layer(X, X)))


def test_unused_slots_do_not_change_outputs():
    layer = make(D)
    output = steps(layer, X, [3, 1, 1], empty(layer, length=T + 7))
    assert_close(output, values(layer(X, X, use_causal_mask=True)))


@pytest.mark.every_backend
def test_compiled_step():
    layer = make(D)
    step = compiled(_step(layer), layer.variables)
    output = steps(layer, X, [1] * T, empty(layer), step)
    assert_close(output, values(layer(X, X, use_causal_mask=True)))


def test_left_padded_prompts():
    """Two left-padded prompts of different lengths, then two steps."""
    layer = make(D)
    token_mask = np.array([[0, 0, 1, 1, 1], [1, 1, 1, 1, 1]], "bool")
    expected = layer(
        X, X, query_mask=token_mask, value_mask=token_mask, use_causal_mask=True
    )
    cache = empty(layer)
    prompt = ops.convert_to_tensor(X[:, :3])
    positions = ops.convert_to_tensor(np.int32([[-1, -1, 0], [0, 1, 2]]))
    slots = ops.pad(positions, ((0, 0), (0, 2)), constant_values=-1)
    cache = cache._replace(positions=slots)
    output, cache = layer.decode_step(
        prompt, cache, 0, kv.DecodingStep(positions)
    )
    cache = kv.close_slots(cache, 3)
    assert_close(values(output), values(expected)[:, :3])
    rest = steps(layer, X[:, 3:], [1, 1], cache)
    assert_close(rest, values(expected)[:, 3:])
    assert (values(output)[0, :2] == 0).all()


@every_layer
@pytest.mark.parametrize("compile_step", [False, True])
def test_reordered_hypotheses(kwargs, compile_step):
    """Two tokens per source, then three hypotheses that are reordered."""
    width, layer = 3, make(D, **kwargs)
    step = _step(layer)
    if compile_step:
        step = compiled(step, layer.variables)
    output, cache = step(ops.convert_to_tensor(X[:, :2]), empty(layer))
    cache = kv.expand_beams(cache, width)
    seen = np.repeat(X[:, :2], width, axis=0)
    counts = 1, 1, 2
    cache = kv.grown(cache, 2 + sum(counts) - kv.slots(cache))
    for number, origins in enumerate([[0, 1, 2], [2, 2, 0], [1, 0, 1]]):
        rows = np.concatenate([origins, width + np.array(origins)])
        cache = kv.reorder(cache, ops.convert_to_tensor(rows.astype("int32")))
        count = counts[number]
        new = normal(B * width, count, D, seed=number)
        seen = np.concatenate([seen[rows], new], axis=1)
        output, cache = step(ops.convert_to_tensor(new), cache)
        expected = values(layer(seen, seen, use_causal_mask=True))
        assert_close(values(output), expected[:, -count:])


@pytest.mark.every_backend
def test_cache_keeps_its_dtype_in_half_precision():
    layer = make(D, dtype="mixed_bfloat16")
    cache = empty(layer, dtype="bfloat16")
    positions, cache = kv.open_slots(cache, 1)
    new = ops.cast(X[:, :1], "bfloat16")
    output, cache = layer.decode_step(new, cache, 0, kv.DecodingStep(positions))
    assert output.dtype == new.dtype
    for tensor in (*cache.keys, *cache.values):
        assert tensor.dtype == new.dtype


POSITIONS = np.int32([[0, 1, 2, 3, 4], [0, 1, 2, -1, -1]])


def project(layer, memory=MEMORY, positions=POSITIONS):
    positions = ops.convert_to_tensor(positions)
    keys, projected = layer.project_memory(
        ops.convert_to_tensor(memory), positions
    )
    return kv.from_projections([keys], [projected], positions)


@pytest.mark.every_backend
@pytest.mark.parametrize("kwargs", [LAYERS[0], LAYERS[2]])
@pytest.mark.parametrize("length", [1, T])
def test_attend_memory_equals_the_full_pass(kwargs, length):
    layer = make(D + 1, **kwargs)
    new = X[:, :length]
    output = layer.attend_memory(ops.convert_to_tensor(new), project(layer), 0)
    expected = layer(new, MEMORY, value_mask=POSITIONS >= 0)
    assert_close(values(output), values(expected))
    assert_differs(values(output), values(layer(new, MEMORY)))


@pytest.mark.parametrize("length", [1, 2])
def test_beams_are_queries_of_their_source(length):
    layer, beams = make(D + 1), 3
    new = normal(B * beams, length, D, seed=4)
    output = layer.attend_memory(ops.convert_to_tensor(new), project(layer), 0)
    assert output.shape == (B * beams, length, D)
    arrays = layer.get_weights()
    mask = (POSITIONS >= 0)[:, None, None]
    expected, _ = reference.multi_head_attention(
        new,
        np.repeat(MEMORY, beams, axis=0),
        arrays,
        mask=np.repeat(mask, beams, axis=0),
    )
    assert_close(values(output), expected)
    wrong, _ = reference.multi_head_attention(
        new,
        np.tile(MEMORY, (beams, 1, 1)),
        arrays,
        mask=np.tile(mask, (beams, 1, 1, 1)),
    )
    assert_differs(values(output), wrong)


def test_nan_padding_of_the_memory_is_ignored():
    layer = make(D + 1)
    poisoned = np.where(POSITIONS[..., None] < 0, np.nan, MEMORY)
    new = ops.convert_to_tensor(X)
    output = layer.attend_memory(new, project(layer, np.float32(poisoned)), 0)
    expected = layer.attend_memory(new, project(layer), 0)
    assert_close(values(output), values(expected), 0)


def test_empty_memory_gives_zeros():
    layer = make(D + 1)
    nothing = np.full_like(POSITIONS, -1)
    output = layer.attend_memory(
        ops.convert_to_tensor(X), project(layer, positions=nothing), 0
    )
    assert (values(output) == 0).all()
