"""Options of attention in newer models, compared with `transformers`."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from keras import ops

from keras_attn import cache as kv
from keras_attn.layers import MultiHeadAttention, RotaryPosition
from keras_attn.ops import Visibility, attend, attention_plan
from tests.helpers.contract import randomize
from tests.helpers.ops_cases import assert_close, assert_differs, normal, values
from tests.helpers.weight_gradients import layer_gradients, weighted_sum

twins = pytest.importorskip("tests.layers.transformers_twin")
torch = twins.torch

B, T, D, N, K, H = 2, 5, 12, 4, 2, 8
BASE = 500.0
X = normal(B, T, D, seed=1)
OPTIONS = {
    "gemma2": {"soft_cap": 0.5},
    "gpt_oss": {"use_sinks": True, "use_bias": True},
    "olmo2": {"qk_norm": "all_heads", "qk_norm_epsilon": 1e-3},
    "qwen3": {"qk_norm": "head"},
}
every_model = pytest.mark.parametrize("kind", OPTIONS)


def attention(**kwargs):
    kwargs = {"use_bias": False, "causal": True, **kwargs}
    layer = MultiHeadAttention(
        N,
        H,
        num_key_value_heads=K,
        attention_position=RotaryPosition(BASE),
        **kwargs,
    )
    layer.build((None, None, D), (None, None, D))
    return randomize(layer, scale=0.6)


@pytest.mark.every_backend
@every_model
def test_equals_transformers(kind):
    """Values and gradients, with padding on the right."""
    layer, upstream = attention(**OPTIONS[kind]), normal(B, T, D, seed=3)
    mask = np.arange(T) < [[T], [3]]
    upstream = upstream * mask[..., None]
    twin, run = twins.modern(kind, layer, D, BASE)
    tensor = torch.tensor(X, requires_grad=True)
    ids = np.tile(np.arange(T), (B, 1))
    visible = np.tri(T, dtype="bool") & mask[:, None]
    expected = run(tensor, ids, visible[:, None])
    (expected * torch.tensor(upstream)).sum().backward()

    def call(x):
        return layer(x, x, query_mask=mask, value_mask=mask)

    found = values(call(X))
    assert_close(found[mask], expected.detach().numpy()[mask])
    assert (found[~mask] == 0).all()
    (at_x,), at_weights = layer_gradients(
        layer, lambda x: weighted_sum(call(x), upstream), X
    )
    assert_close(at_x, tensor.grad.numpy())
    theirs = twins.modern_gradients(twin, at_weights)
    assert theirs.keys() == at_weights.keys()
    for path, array in theirs.items():
        assert_close(at_weights[path], array)
    plain = attention(use_bias=layer.use_bias)
    ours = {weight.path.partition("/")[2]: weight for weight in layer.weights}
    for weight in plain.weights:
        weight.assign(ours[weight.path.partition("/")[2]])
    assert_differs(values(plain(X, X))[mask], found[mask])


def decoded(layer, counts):
    cache, outputs, start = kv.empty(B, T, 1, K, H, H, "float32"), [], 0
    for count in counts:
        new = ops.convert_to_tensor(X[:, start : start + count])
        positions, cache = kv.open_slots(cache, count)
        output, cache = layer.decode_step(
            new, cache, 0, kv.DecodingStep(positions)
        )
        cache = kv.close_slots(cache, count)
        outputs.append(values(output))
        start += count
    return np.concatenate(outputs, axis=1)


@pytest.mark.every_backend
@every_model
def test_cached_decoding_equals_the_full_pass(kind):
    layer = attention(**OPTIONS[kind], sliding_window=3)
    assert_close(decoded(layer, [2, 1, 1, 1]), values(layer(X, X)))


def test_fused_projections_are_normalized():
    """Decoding with `prepare_weights`, as in `generate`."""
    layer = attention(qk_norm="head", use_sinks=True)
    cache = kv.empty(B, T, 1, K, H, H, "float32")
    positions, cache = kv.open_slots(cache, T)
    step = kv.DecodingStep(positions, weights=(layer.prepare_weights(),))
    output, _ = layer.decode_step(ops.convert_to_tensor(X), cache, 0, step)
    assert_close(values(output), values(layer(X, X)))


def loops(query, key, value, mask, soft_cap, sinks, bias):
    """Computes each weight on its own, in float64."""
    output = np.zeros((B, T, N, H))
    for b, t, n in np.ndindex(B, T, N):
        scores = key[b, :, n // (N // K)] @ query[b, t, n] / np.sqrt(H)
        if soft_cap is not None:
            scores = soft_cap * np.tanh(scores / soft_cap)
        scores = np.exp(scores + bias[n, t])
        total = scores[mask[t]].sum()
        if sinks is not None:
            total += np.exp(sinks[n])
        for s in np.flatnonzero(mask[t]):
            output[b, t, n] += scores[s] / total * value[b, s, n // (N // K)]
    return output


@pytest.mark.every_backend
@given(
    soft_cap=st.sampled_from([None, 0.3, 20.0]),
    sinks=st.booleans(),
    causal=st.booleans(),
    window=st.sampled_from([None, 2]),
    seed=st.integers(0, 9),
)
@settings(max_examples=12, deadline=None)
def test_attend_follows_the_equation(soft_cap, sinks, causal, window, seed):
    query = normal(B, T, N, H, seed=seed)
    key, value = (normal(B, T, K, H, seed=seed + i) for i in (1, 2))
    bias = normal(N, T, T, seed=seed + 3)
    sinks = normal(N, seed=seed + 4) if sinks else None
    distance = np.arange(T)[:, None] - np.arange(T)
    mask = np.ones((T, T), bool)
    if causal:
        mask &= distance >= 0
    if window:
        mask &= np.abs(distance) < window
    found = attend(
        query,
        key,
        value,
        Visibility(causal=causal, window=window),
        bias=ops.convert_to_tensor(bias[None]),
        soft_cap=soft_cap,
        sinks=None if sinks is None else ops.convert_to_tensor(sinks),
    )
    assert_close(
        values(found), loops(query, key, value, mask, soft_cap, sinks, bias)
    )


@pytest.mark.every_backend
def test_fully_masked_queries_return_zeros_with_sinks():
    layer = attention(use_sinks=True, use_bias=True)
    mask = np.zeros((B, 1, T, T), bool)
    assert (values(layer(X, X, attention_mask=mask)) == 0).all()
    output, weights = layer(X, X, return_attention_scores=True)
    sums = values(weights).sum(-1)
    assert (sums < 1).all() and np.isfinite(values(output)).all()


@pytest.mark.every_backend
@pytest.mark.parametrize(
    ("kwargs", "why"),
    [
        ({"soft_cap": 30.0}, "it cannot cap scores"),
        ({"sinks": np.zeros(N, "float32")}, "it has no attention sinks"),
    ],
)
def test_plan_names_the_option(kwargs, why):
    x = ops.ones((1, 4096, N, H))
    plan = attention_plan(x, x, Visibility(causal=True), **kwargs)
    assert plan.kernel == "plain"
    assert dict(plan.rejected)["fused"] == why
    assert dict(plan.rejected)["blockwise"] == why
    with pytest.raises(ValueError, match=f"blockwise kernel was forced.*{why}"):
        attention_plan(x, x, kernel="blockwise", **kwargs)


@pytest.mark.parametrize(
    ("kwargs", "message"),
    [
        ({"qk_norm": "heads"}, r"`qk_norm` must be one of None, 'head', 'all_"),
        ({"qk_norm_epsilon": 0}, "`qk_norm_epsilon` must be a number greater"),
        ({"soft_cap": 0.0}, "`soft_cap` must be a number greater than 0"),
        ({"use_sinks": None}, "`use_sinks` must be True or False"),
        (
            {"soft_cap": 1.0, "flash_attention": True},
            "`flash_attention` must not be True.*soft_cap=1.0",
        ),
    ],
)
def test_invalid_arguments_raise(kwargs, message):
    with pytest.raises(ValueError, match=message):
        MultiHeadAttention(N, H, **kwargs)


def test_sinks_of_another_shape_raise():
    x = np.ones((1, 2, N, H), "float32")
    for sinks in (np.zeros(N + 1, "float32"), np.zeros((N, 1), "float32")):
        with pytest.raises(ValueError, match=r"`sinks` must have shape \(4,\)"):
            attend(x, x, x, sinks=sinks)


def test_config_round_trip():
    layer = attention(
        qk_norm="head", qk_norm_epsilon=0.1, soft_cap=3.0, use_sinks=True
    )
    restored = MultiHeadAttention.from_config(layer.get_config())
    for name in ("qk_norm", "qk_norm_epsilon", "soft_cap", "use_sinks"):
        assert getattr(restored, name) == getattr(layer, name)


@pytest.mark.every_backend
@pytest.mark.parametrize("dtype", ["mixed_bfloat16", "mixed_float16"])
def test_half_precision(dtype):
    options = {
        "qk_norm": "head",
        "qk_norm_epsilon": 1e-6,
        "soft_cap": 5.0,
        "use_sinks": True,
    }
    exact, half = attention(**options), attention(**options, dtype=dtype)
    half.set_weights(exact.get_weights())
    x = ops.cast(ops.convert_to_tensor(X), half.compute_dtype)
    assert_close(values(half(x, x)), values(exact(X, X)), 0.05)
