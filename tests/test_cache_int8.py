"""Caches of 8 bits, against loops that round keys and values."""

import numpy as np
import pytest
from keras import ops, tree

from keras_attn import cache as kv
from keras_attn import models
from keras_attn.decoding import BeamSearch, Sampling
from keras_attn.layers import MultiHeadAttention
from tests.helpers.contract import randomize
from tests.helpers.ops_cases import assert_close, normal, values

N, K, H, D = 4, 2, 3, 6
COUNTS = 2, 1, 1, 2


def rounded(x):
    """Rounds features to 127 steps per token and head; also the steps."""
    step = np.abs(x).max(axis=-1, keepdims=True) / np.float32(127)
    return np.round(x / step) * step, step


def attention(arrays, x, window, rounding):
    """Returns the outputs, and bounds of what the rounding changed."""
    (wq, bq), (wk, bk), (wv, bv), (wo, bo) = zip(
        arrays[::2], arrays[1::2], strict=True
    )
    q = np.einsum("td,dnh->tnh", x, wq) + bq
    k, v = (np.einsum("td,dnh->tnh", x, w) + b for w, b in ((wk, bk), (wv, bv)))
    steps = rounded(k)[1], rounded(v)[1]
    if rounding:
        k, v = rounded(k)[0], rounded(v)[0]
    outputs, bounds = np.zeros_like(x), np.zeros_like(x)
    for t in range(len(x)):
        outputs[t] = bo
        first = 0 if window is None else max(t - window + 1, 0)
        for n in range(N):
            keys, found = (a[first : t + 1, n * K // N] for a in (k, v))
            key_step, value_step = (a[first : t + 1, n * K // N] for a in steps)
            weights = np.exp(keys @ q[t, n] / np.sqrt(H))
            weights /= weights.sum()
            outputs[t] += weights @ found @ wo[n]
            # Each score moves by half a step per feature at most, so each
            # weight by a factor of exp of twice that.
            moved = np.abs(q[t, n]).sum() * key_step.max() / 2 / np.sqrt(H)
            bound = value_step.max() / 2
            bound += (np.exp(2 * moved) - 1) * np.abs(found).max()
            bounds[t] += bound * np.abs(wo[n]).sum(axis=0)
    return outputs, bounds


@pytest.mark.every_backend
@pytest.mark.parametrize("window", [None, 3])
def test_steps_equal_a_loop_that_rounds(window):
    layer = MultiHeadAttention(
        N, H, num_key_value_heads=K, sliding_window=window
    )
    layer.build((None, None, D), (None, None, D))
    randomize(layer)
    x = normal(1, sum(COUNTS), D, seed=3)
    cache = kv.empty(1, sum(COUNTS), 1, K, H, H, "float32", window)
    cache, start, found = kv.quantized(cache), 0, []
    for count in COUNTS:
        new = ops.convert_to_tensor(x[:, start : start + count])
        positions, cache = kv.open_slots(cache, count)
        output, cache = layer.decode_step(
            new, cache, 0, kv.DecodingStep(positions)
        )
        cache = kv.close_slots(cache, count)
        found.append(values(output)[0])
        start += count
    found = np.concatenate(found)
    arrays = layer.get_weights()
    assert_close(found, attention(arrays, x[0], window, True)[0])
    exact, bounds = attention(arrays, x[0], window, False)
    difference = np.abs(found - exact)
    assert (difference <= bounds + 1e-6).all() and difference.max() > 1e-4


@pytest.mark.every_backend
def test_memory_is_a_quarter():
    def nbytes(cache):
        return sum(
            values(part).nbytes for part in tree.flatten(cache[:2])
        ), len(tree.flatten(cache.keys))

    cache = kv.empty(2, 5, 3, 2, 64, 64, "float32", [None, 4, 9])
    exact = 4 * 2 * 2 * (5 + 4 + 5) * 2 * 64
    assert nbytes(cache) == (exact, 3)
    cache = kv.quantized(cache)
    # A byte per feature, and a scale per token and head.
    assert nbytes(cache) == (exact * (64 + 4) // 256, 6)
    # Nothing is rounded twice.
    cache = kv.grown(kv.expand_beams(kv.quantized(cache), 3), 5)
    assert nbytes(cache)[0] == 3 * exact * (10 + 4 + 9) // 14 * 68 // 256


@pytest.mark.every_backend
def test_rounding_of_zeros_and_half_precision():
    cache = kv.quantized(kv.empty(1, 3, 1, 1, 2, 2, "bfloat16"))
    _, cache = kv.open_slots(cache, 2)
    x = np.float32([[[[0, 0]], [[1, -3]]]])
    tokens = ops.cast(ops.convert_to_tensor(x), "bfloat16")
    cache = kv.append(cache, 0, tokens, tokens)
    keys, _, _ = kv.read(cache, 0, 1)
    assert keys.dtype == tokens.dtype
    np.testing.assert_allclose(values(keys)[0, :2], x[0], rtol=0.02)
    assert not values(keys)[0, 2].any()


def gpt():
    return models.GPT(
        13,
        num_layers=2,
        num_heads=2,
        hidden_dim=8,
        max_sequence_length=12,
        sliding_window=[3, None],
        pad_id=None,
        start_id=None,
        end_id=None,
    )


def transformer():
    return models.Transformer(13, num_layers=1, num_heads=2, hidden_dim=8)


def forced(model, inputs, tokens, lengths, quantize):
    """Scores given tokens in eager steps, one after another."""
    inputs = np.int32([inputs] * len(tokens))
    state = model.start_decoding(ops.convert_to_tensor(inputs), len(tokens[0]))
    if quantize:
        memory, hypothesis = kv.quantized((state.memory, state.hypothesis))
        state = state._replace(memory=memory, hypothesis=hypothesis)
    scores, step = np.zeros(len(tokens)), state.tokens
    for index in range(max(lengths)):
        logits, state = model.decode_step(step, state)
        logits = values(logits)[:, 0].astype("float64")
        chosen = np.take_along_axis(logits, tokens[:, index : index + 1], 1)
        chosen = chosen[:, 0] - np.log(np.exp(logits).sum(axis=1))
        scores += np.where(index < lengths, chosen, 0)
        step = ops.convert_to_tensor(tokens[:, index : index + 1])
    return scores


@pytest.mark.every_backend
@pytest.mark.parametrize(
    ("make", "strategy"),
    [
        (gpt, BeamSearch(3, num_return_sequences=2, length_penalty=0.0)),
        (gpt, Sampling(seed=3, num_return_sequences=2)),
        (transformer, "greedy"),
    ],
)
def test_scores_are_those_of_steps_with_rounded_caches(make, strategy):
    model = randomize(make())
    prompts = [[3, 4, 5, 6, 7], [9, 8]]
    found = model.generate(prompts, 5, strategy, cache_dtype="int8")
    exact = []
    for row, prompt in enumerate(prompts):
        given = model, prompt, found.tokens[row], found.lengths[row]
        scores = found.scores[row]
        np.testing.assert_allclose(scores, forced(*given, True), atol=1e-5)
        exact += np.abs(scores - forced(*given, False)).tolist()
    assert 1e-4 < max(exact) < 0.5
    if strategy != "greedy":
        return
    *_, last = model.stream(prompts, 5, strategy, cache_dtype="int8")
    np.testing.assert_array_equal(last.tokens, found.tokens)
    np.testing.assert_allclose(last.scores, found.scores, atol=1e-5)


@pytest.mark.one_backend
def test_wrong_arguments_raise():
    with pytest.raises(ValueError, match=r"`cache_dtype` .*'int4'"):
        gpt().generate([[3]], 2, cache_dtype="int4")
    model = models.RecurrentSeq2Seq(9, hidden_dim=2)
    with pytest.raises(ValueError, match=r"`cache_dtype` needs .*Recurrent"):
        model.generate([[3]], 2, cache_dtype="int8")
    with pytest.raises(ValueError, match=r"`hypothesis` must contain .*dict"):
        kv.quantized({"tokens": np.ones(2)})
