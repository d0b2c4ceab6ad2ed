"""Scaled rotary positions compared with `transformers`."""

import json

import keras
import numpy as np
import pytest
from keras import ops

from keras_attn import cache as kv
from keras_attn.layers import AttentionPosition, MultiHeadAttention
from keras_attn.layers import RotaryPosition as Rotary
from keras_attn.ops.positions import sequence_lengths
from tests.helpers.contract import randomize
from tests.helpers.ops_cases import assert_close, assert_differs, normal, values
from tests.helpers.weight_gradients import layer_gradients, weighted_sum
from tests.layers import transformers_twin as twins
from tests.layers.position_cases import positions, turned

torch = pytest.importorskip("torch")

from transformers import DynamicCache, LlamaConfig
from transformers.models.llama import modeling_llama

B, T, D, N, H = 2, 6, 6, 2, 8
BASE = 500.0
LENGTH = 8
SHORT, LONG = 4, 12
SCALINGS = {
    "linear": {"rope_type": "linear", "factor": 4.0},
    "dynamic": {
        "rope_type": "dynamic",
        "factor": 2.5,
        "original_max_position_embeddings": LENGTH,
    },
    "yarn": {
        "rope_type": "yarn",
        "factor": 8.0,
        "original_max_position_embeddings": LENGTH * 8,
    },
    "yarn, options": {
        "rope_type": "yarn",
        "factor": 4.0,
        "original_max_position_embeddings": LENGTH * 16,
        "beta_fast": 16.0,
        "beta_slow": 2.0,
        "mscale": 1.5,
        "mscale_all_dim": 0.7,
        "truncate": False,
    },
    "yarn, attention factor": {
        "rope_type": "yarn",
        "factor": 4.0,
        "original_max_position_embeddings": LENGTH,
        "attention_factor": 1.7,
    },
    "llama3": {
        "rope_type": "llama3",
        "factor": 8.0,
        "low_freq_factor": 1.0,
        "high_freq_factor": 4.0,
        "original_max_position_embeddings": LENGTH * 8,
    },
    "longrope": {
        "rope_type": "longrope",
        "factor": 4.0,
        "original_max_position_embeddings": LENGTH,
        "short_factor": [1.0, 1.5, 2.0, 3.0],
        "long_factor": [1.0, 4.0, 6.0, 9.0],
    },
    "longrope, attention factor": {
        "rope_type": "longrope",
        "original_max_position_embeddings": LENGTH,
        "attention_factor": 1.3,
        "short_factor": [1.0, 1.5, 2.0, 3.0],
        "long_factor": [1.0, 4.0, 6.0, 9.0],
    },
    "default": {"rope_type": "default"},
}
BY_LENGTH = ["dynamic", "longrope"]
every_scaling = pytest.mark.parametrize("name", SCALINGS)
by_length = pytest.mark.parametrize("name", BY_LENGTH)


def rotary(name, **kwargs):
    return Rotary(BASE, scaling=SCALINGS[name], **kwargs)


def expected_rotation(name, x, position_ids, part=1.0):
    """Rotates (B, T, N, H) with `modeling_rope_utils` of `transformers`."""
    scaling = SCALINGS[name]
    config = LlamaConfig(
        hidden_size=N * H,
        head_dim=H,
        num_attention_heads=N,
        max_position_embeddings=scaling.get(
            "original_max_position_embeddings", 2048
        ),
        rope_parameters={
            "rope_theta": BASE,
            "partial_rotary_factor": part,
            **scaling,
        },
    )
    angles = modeling_llama.LlamaRotaryEmbedding(config)
    width = int(part * H)
    first = torch.tensor(x[..., :width]).transpose(1, 2)
    ids = torch.tensor(position_ids, dtype=torch.long)
    rotated, _ = modeling_llama.apply_rotary_pos_emb(
        first, first, *angles(first, ids)
    )
    return np.concatenate(
        [rotated.transpose(1, 2).numpy(), x[..., width:]], axis=-1
    )


def rotated(position, x, position_ids):
    return values(
        position.rotate(ops.convert_to_tensor(x), positions(position_ids))
    )


@pytest.mark.every_backend
@every_scaling
@pytest.mark.parametrize("length", [SHORT, LONG])
def test_equals_transformers(name, length):
    """Below and above the original length; in another layout too."""
    x = normal(B, length, N, H, seed=1)
    ids = np.tile(np.arange(length), (B, 1))
    expected = expected_rotation(name, x, ids)
    assert_close(rotated(rotary(name), x, ids), expected)
    pairs = np.stack([x[..., : H // 2], x[..., H // 2 :]], -1).reshape(x.shape)
    found = rotated(rotary(name, layout="interleaved"), pairs, ids)
    assert_close(
        np.concatenate([found[..., 0::2], found[..., 1::2]], -1), expected
    )
    if name != "default" and not (name == "dynamic" and length == SHORT):
        assert_differs(turned(x, ids, BASE), expected)


@pytest.mark.every_backend
@pytest.mark.parametrize(
    "name", ["linear", "dynamic", "yarn, options", "llama3"]
)
def test_equals_transformers_with_part_of_a_head(name):
    x = normal(B, LONG, N, H, seed=1)
    ids = np.tile(np.arange(LONG), (B, 1))
    found = rotated(rotary(name, rotary_dim=4), x, ids)
    assert_close(found, expected_rotation(name, x, ids, part=0.5))


@pytest.mark.every_backend
@every_scaling
def test_attention_equals_llama(name):
    """Values and gradients of an attention layer longer than in training."""
    layer = attention(name, num_key_value_heads=1, causal=True)
    x, upstream = normal(B, LONG, D, seed=2), normal(B, LONG, D, seed=3)
    twin, run = twins.llama(layer, D, BASE, SCALINGS[name])
    tensor = torch.tensor(x, requires_grad=True)
    ids = np.tile(np.arange(LONG), (B, 1))
    expected = run(tensor, ids, np.tri(LONG, dtype="bool")[None, None])
    (expected * torch.tensor(upstream)).sum().backward()
    assert_close(values(layer(x, x)), expected.detach().numpy())
    (at_x,), at_weights = layer_gradients(
        layer, lambda x: weighted_sum(layer(x, x), upstream), x
    )
    assert_close(at_x, tensor.grad.numpy())
    for part, found in twins.gradients(twin).items():
        array = at_weights[f"{part}/kernel"]
        assert_close(array, np.reshape(found, array.shape))


def attention(name, **kwargs):
    layer = MultiHeadAttention(
        N, H, use_bias=False, attention_position=rotary(name), **kwargs
    )
    layer.build((None, None, D), (None, None, D))
    return randomize(layer)


@pytest.mark.every_backend
@by_length
@pytest.mark.parametrize("jit", [False, True])
def test_cached_decoding_equals_transformers(name, jit):
    """A prompt of two tokens less than the original length, then steps."""
    layer = attention(name, causal=True)
    x = normal(B, LONG, D, seed=2)
    counts = [LENGTH - 2, *[1] * (LONG - LENGTH + 2)]
    _, run = twins.llama(layer, D, BASE, SCALINGS[name])
    theirs, expected, start = DynamicCache(), [], 0
    for count in counts:
        stop = start + count
        ids = np.tile(np.arange(start, stop), (B, 1))
        mask = np.tri(LONG, dtype="bool")[None, None, start:stop, :stop]
        with torch.no_grad():
            new = torch.tensor(x[:, start:stop])
            expected.append(run(new, ids, mask, theirs).numpy())
        start = stop
    found = decoded(layer, x, counts, jit)
    assert_close(found, np.concatenate(expected, axis=1))
    # A full pass rotates all keys for the length at its end.
    assert_differs(found, values(layer(x, x)))


def decoded(layer, x, counts, jit=False, lengths=()):
    def step(new, cache):
        position_ids, cache = kv.open_slots(cache, new.shape[1])
        output, cache = layer.decode_step(
            new, cache, 0, kv.DecodingStep(position_ids, lengths=lengths)
        )
        return output, kv.close_slots(cache, new.shape[1])

    if jit and keras.backend.backend() == "jax":
        import jax

        step = jax.jit(step)
    elif jit and keras.backend.backend() == "tensorflow":
        import tensorflow as tf

        step = tf.function(step, jit_compile=True)
    cache = kv.empty(B, len(x[0]), 1, N, H, H, "float32")
    outputs, start = [], 0
    for count in counts:
        new = ops.convert_to_tensor(x[:, start : start + count])
        output, cache = step(new, cache)
        outputs.append(values(output))
        start += count
    return np.concatenate(outputs, axis=1)


@pytest.mark.every_backend
@by_length
def test_prompt_is_rotated_for_its_whole_length(name):
    """`lengths` of a step count tokens that a later step reads."""
    layer = attention(name, causal=True)
    x = normal(B, LENGTH + 1, D, seed=2)
    lengths = ops.full((B, 1), LENGTH + 1, dtype="int32")
    found = decoded(layer, x, [LENGTH, 1], lengths=lengths)
    assert_close(found, values(layer(x, x)))
    assert_differs(decoded(layer, x, [LENGTH, 1]), found)


@pytest.mark.every_backend
@by_length
def test_rows_and_segments_have_their_own_lengths(name):
    """Padding on either side and packed neighbors change nothing."""
    layer = attention(name, causal=True)
    long, short = normal(1, LONG, D, seed=2), normal(1, SHORT, D, seed=3)
    alone = [values(layer(x, x)) for x in (long, short)]
    blank = np.zeros((1, LONG - SHORT, D), "float32")
    for left in (False, True):
        row = np.concatenate([blank, short] if left else [short, blank], 1)
        x = np.concatenate([long, row])
        mask = np.ones((2, LONG), bool)
        mask[1, slice(None, -SHORT) if left else slice(SHORT, None)] = False
        both = ops.convert_to_tensor(mask)
        found = values(layer(x, x, query_mask=both, value_mask=both))
        assert_close(found[:1], alone[0])
        assert_close(found[1:][:, mask[1]], alone[1])
    packed = np.concatenate([short, long, short], 1)
    segments = np.repeat([[0, 1, 2]], [SHORT, LONG, SHORT], axis=1)
    segments = segments.astype("int32")
    found = values(
        layer(
            packed,
            packed,
            query_segment_ids=segments,
            key_segment_ids=segments,
        )
    )
    expected = np.concatenate([alone[1], alone[0], alone[1]], axis=1)
    assert_close(found, expected)


@pytest.mark.every_backend
def test_sequence_lengths_with_padding():
    """Padding before, between, inside and after segments."""
    position_ids = [[-1, 0, -1, 1, -1, 0, 1, 2, -1, -1]]
    segments = [[0, 1, 1, 1, 1, 2, 2, 2, 2, 3]]
    found = values(
        sequence_lengths(positions(position_ids), positions(segments))
    )
    tokens = np.array(position_ids) >= 0
    assert found[tokens].tolist() == [2, 2, 3, 3, 3]
    assert values(sequence_lengths(positions(position_ids))).tolist() == [[3]]
    empty = positions(np.zeros((2, 0)))
    assert values(sequence_lengths(empty)).tolist() == [[0], [0]]


@pytest.mark.every_backend
@pytest.mark.parametrize("name", ["yarn", "longrope"])
def test_exact_at_large_positions(name):
    """Tables are computed in float64; the reference here is too."""
    ids = np.int32([[0, 8_191, 70_000, 131_071]])
    x = normal(1, 4, N, H, seed=1)
    position = rotary(name)
    (*_, frequencies) = position._scaling.frequencies(H)
    expected = np.empty_like(x, "float64")
    for i, w in enumerate(frequencies):
        number = (x[..., i] + 1j * x[..., i + H // 2]) * np.exp(
            1j * ids[..., None] * w
        )
        expected[..., i], expected[..., i + H // 2] = number.real, number.imag
    expected *= position._scaling.attention_factor
    assert_close(rotated(position, x, ids), expected)


@pytest.mark.every_backend
@every_scaling
def test_half_precision_is_float32_inside(name):
    x = normal(1, LONG, N, H, seed=4)
    ids = np.arange(LONG)[None]
    half = ops.cast(ops.convert_to_tensor(x), "bfloat16")
    position = rotary(name, dtype="mixed_bfloat16")
    found = position.rotate(half, positions(ids))
    assert keras.backend.standardize_dtype(found.dtype) == "bfloat16"
    exact = rotated(rotary(name), values(half), ids)
    rounded = values(ops.cast(ops.convert_to_tensor(exact), "bfloat16"))
    np.testing.assert_array_equal(values(found), rounded)


@every_scaling
def test_config_round_trip(name):
    position = rotary(name, rotary_dim=H)
    config = json.loads(json.dumps(position.get_config()))
    restored = Rotary.from_config(config)
    assert restored.scaling == position.scaling == SCALINGS[name]
    assert restored.scaling is not restored.scaling
    assert restored.depends_on_length == any(n in name for n in BY_LENGTH)
    assert Rotary().scaling is None and not Rotary().depends_on_length
    assert not AttentionPosition().depends_on_length


def test_none_is_the_default_of_optional_keys():
    scaling = {**SCALINGS["yarn"], "beta_fast": None, "attention_factor": None}
    assert Rotary(scaling=scaling).scaling == SCALINGS["yarn"]


def without(name, key):
    return {k: v for k, v in SCALINGS[name].items() if k != key}


@pytest.mark.parametrize(
    ("scaling", "message"),
    [
        ("yarn", r"`scaling` must be a dict.*Received: scaling='yarn'"),
        ({"factor": 2.0}, r"must have the key 'rope_type'.*'factor'"),
        (
            {"rope_type": "mrope", "factor": 2.0},
            r"one of the types 'default', 'linear'.*'mrope'",
        ),
        (without("yarn", "factor"), r"must have the key 'factor'.*'yarn'"),
        ({**SCALINGS["yarn"], "factor": None}, r"\['factor'\].*None"),
        (
            without("dynamic", "original_max_position_embeddings"),
            "must have the key 'original_max_position_embeddings'",
        ),
        (
            without("longrope", "factor"),
            "must have the key 'factor' or 'attention_factor'",
        ),
        (
            {**SCALINGS["linear"], "beta_fast": 3},
            r"only have keys of 'linear': 'rope_type', 'factor'.*'beta_fast'",
        ),
        (
            {**SCALINGS["linear"], "rope_theta": 1e4},
            "key 'rope_theta': it is the argument `max_wavelength`",
        ),
        (
            {**SCALINGS["linear"], "partial_rotary_factor": 0.5},
            "it is the argument `rotary_dim`",
        ),
        ({**SCALINGS["linear"], "factor": 0.5}, "at least 1.*0.5"),
        ({**SCALINGS["linear"], "factor": "4"}, "greater than 0.*'4'"),
        (
            {**SCALINGS["yarn"], "original_max_position_embeddings": 8.0},
            "must be an integer.*8.0",
        ),
        ({**SCALINGS["yarn"], "truncate": 1}, "must be True or False"),
        ({**SCALINGS["yarn"], "mscale": 1.0}, "'mscale_all_dim' together"),
        (
            {**SCALINGS["yarn, options"], "attention_factor": 1.0},
            "not with 'attention_factor'",
        ),
        ({**SCALINGS["yarn"], "beta_slow": 40}, "'beta_fast' greater.*32"),
        ({**SCALINGS["llama3"], "low_freq_factor": 4.0}, "greater than"),
        ({**SCALINGS["longrope"], "long_factor": 3.0}, "a list of numbers"),
        ({**SCALINGS["longrope"], "long_factor": [1, 2, -3, 4]}, "than 0"),
        (
            {**SCALINGS["longrope"], "short_factor": [1.0]},
            "each of the 4 pairs.*1 numbers",
        ),
    ],
)
def test_invalid_scaling_raises(scaling, message):
    with pytest.raises(ValueError, match=message):
        Rotary(rotary_dim=H, scaling=scaling)


def test_scaling_that_does_not_fit_raises():
    with pytest.raises(ValueError, match=r"each of the 2 pairs.*4 numbers"):
        MultiHeadAttention(N, 4, attention_position=rotary("longrope"))
    with pytest.raises(ValueError, match=r"at least 4 rotated features.*2"):
        MultiHeadAttention(N, 2, attention_position=rotary("dynamic"))
    with pytest.raises(ValueError, match=r"greater than 1.*max_wavelength=0.5"):
        Rotary(0.5, scaling=SCALINGS["yarn"])
    layer = attention("dynamic")
    with pytest.raises(ValueError, match="must not depend on the length"):
        layer.project_memory(np.zeros((1, 2, D), "float32"), None)
