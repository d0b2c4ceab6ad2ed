"""RotaryPosition compared with Llama, GPT-NeoX, GPT-J, complex numbers."""

import keras
import numpy as np
import pytest
from keras import ops

from keras_attn.layers import MultiHeadAttention, RotaryPosition
from tests.helpers.contract import randomize
from tests.helpers.gradients import gradient
from tests.helpers.ops_cases import assert_close, assert_differs, normal, values
from tests.helpers.weight_gradients import layer_gradients, weighted_sum
from tests.layers import transformers_twin as twins
from tests.layers.position_cases import positions, turned

torch = pytest.importorskip("torch")

from transformers import GPTNeoXConfig
from transformers.models.gpt_neox import modeling_gpt_neox
from transformers.models.gptj import modeling_gptj

pytestmark = pytest.mark.every_backend

B, T, N, H = 2, 7, 2, 8
X = normal(B, T, N, H, seed=1)
FAR = np.int32([np.arange(T), 8_192 - T + np.arange(T)])
every_layout = pytest.mark.parametrize("layout", ["halves", "interleaved"])


def rotate(position, x=X, position_ids=FAR):
    return values(
        position.rotate(ops.convert_to_tensor(x), positions(position_ids))
    )


@every_layout
@pytest.mark.parametrize("width", [None, 2, 6])
@pytest.mark.parametrize("base", [10000.0, 500_000, 7.5])
def test_equals_complex_numbers(layout, width, base):
    position = RotaryPosition(
        max_wavelength=base, rotary_dim=width, layout=layout
    )
    actual = rotate(position)
    assert actual.dtype == "float32"
    assert_close(actual, turned(X, FAR, base, width, layout))
    if width:
        np.testing.assert_array_equal(actual[..., width:], X[..., width:])
    if width != 2:
        other = {"halves": "interleaved", "interleaved": "halves"}[layout]
        assert_differs(actual, turned(X, FAR, base, width, other))
    assert_differs(actual, turned(X, -FAR, base, width, layout))


@pytest.mark.parametrize("key_value_heads", [1, 2])
def test_equals_llama(key_value_heads):
    """Values and gradients of causal attention, with an offset."""
    width, base = 6, 500.0
    layer = MultiHeadAttention(
        N,
        H,
        num_key_value_heads=key_value_heads,
        use_bias=False,
        causal=True,
        attention_position=RotaryPosition(max_wavelength=base),
    )
    layer.build((None, None, width), (None, None, width))
    randomize(layer)
    x, upstream = normal(B, T, width, seed=2), normal(B, T, width, seed=3)
    position_ids = np.int32([np.arange(T), 40 + np.arange(T)])
    twin, run = twins.llama(layer, width, base)
    tensor = torch.tensor(x, requires_grad=True)
    expected = run(tensor, position_ids, np.tri(T, dtype="bool")[None, None])
    (expected * torch.tensor(upstream)).sum().backward()

    def call(x):
        return layer(
            x, x, query_positions=position_ids, key_positions=position_ids
        )

    assert_close(values(call(x)), expected.detach().numpy())
    (at_x,), at_weights = layer_gradients(
        layer, lambda x: weighted_sum(call(x), upstream), x
    )
    assert_close(at_x, tensor.grad.numpy())
    for name, found in twins.gradients(twin).items():
        array = at_weights[f"{name}/kernel"]
        assert_close(array, np.reshape(found, array.shape))
    assert_differs(
        values(layer(x, x, query_positions=position_ids)), values(call(x))
    )


@pytest.mark.parametrize("part", [1.0, 0.5, 0.25])
def test_equals_gpt_neox(part):
    config = GPTNeoXConfig(
        hidden_size=N * H,
        num_attention_heads=N,
        rope_parameters={
            "rope_type": "default",
            "rope_theta": 10000.0,
            "partial_rotary_factor": part,
        },
    )
    angles = modeling_gpt_neox.GPTNeoXRotaryEmbedding(config)
    position_ids = np.int32([np.arange(T), 100 + np.arange(T)])
    x = torch.tensor(X).transpose(1, 2)
    cosine, sine = angles(x, torch.tensor(position_ids, dtype=torch.long))
    expected, _ = modeling_gpt_neox.apply_rotary_pos_emb(x, x, cosine, sine)
    position = RotaryPosition(rotary_dim=int(part * H))
    assert_close(
        rotate(position, position_ids=position_ids),
        expected.transpose(1, 2).numpy(),
    )


@pytest.mark.parametrize("width", [4, 8])
def test_equals_gptj(width):
    """Interleaved, for all or part of a head."""
    table = modeling_gptj.create_sinusoidal_positions(200, width)
    position_ids = np.int32([np.arange(T), 100 + np.arange(T)])
    sine, cosine = torch.chunk(table[torch.tensor(position_ids)], 2, dim=-1)
    first = modeling_gptj.apply_rotary_pos_emb(
        torch.tensor(X[..., :width]), sine, cosine
    )
    expected = np.concatenate([first.numpy(), X[..., width:]], axis=-1)
    position = RotaryPosition(rotary_dim=width, layout="interleaved")
    assert_close(rotate(position, position_ids=position_ids), expected)


@every_layout
def test_gradient_is_the_inverse_rotation(layout):
    position = RotaryPosition(layout=layout, rotary_dim=4)
    upstream = normal(*X.shape, seed=3)

    def loss(x):
        return weighted_sum(position.rotate(x, positions(FAR)), upstream)

    (found,) = gradient(loss, X)
    assert_close(found, turned(upstream, -FAR, 10000.0, 4, layout))


@every_layout
def test_bfloat16_at_every_position(layout):
    """Up to position 8,192, exact up to one rounding."""
    position_ids = np.arange(8_193, dtype="int32")[None]
    exact = normal(1, position_ids.size, 1, H, seed=4)
    x = ops.cast(ops.convert_to_tensor(exact), "bfloat16")
    position = RotaryPosition(layout=layout, dtype="mixed_bfloat16")
    output = position.rotate(x, positions(position_ids))
    assert keras.backend.standardize_dtype(output.dtype) == "bfloat16"
    expected = turned(values(x), position_ids, layout=layout)
    # Half a bfloat16 ulp (8 significant bits) plus the float32 error.
    bound = 2.0**-8 * np.abs(expected) * 1.01 + 1e-5
    assert (np.abs(values(output) - expected) <= bound).all()
    # Wrong result: positions in bfloat16.
    rounded_ids = values(
        ops.cast(ops.cast(position_ids, "bfloat16"), "float32")
    )
    wrong = turned(values(x), rounded_ids, layout=layout)
    assert (np.abs(wrong - expected) > bound).mean() > 0.3


def test_padding_is_not_rotated():
    output = rotate(RotaryPosition(), position_ids=np.full((B, T), -1))
    np.testing.assert_array_equal(output, X)


def test_positions_broadcast_over_the_batch():
    position = RotaryPosition()
    row = rotate(position, position_ids=FAR[:1])
    assert_close(row, rotate(position, position_ids=FAR[[0, 0]]), 1e-7)


@pytest.mark.parametrize(
    ("kwargs", "message"),
    [
        ({"rotary_dim": 3}, "`rotary_dim` must be even.*rotary_dim=3"),
        ({"rotary_dim": 0}, "`rotary_dim` must be a positive integer"),
        (
            {"max_wavelength": 0},
            "`max_wavelength` must be a number > 0.*max_wavelength=0",
        ),
        (
            {"max_wavelength": "large"},
            "`max_wavelength` must be a number > 0.*'large'",
        ),
        ({"layout": "pairs"}, "`layout` must be one of 'halves', 'inter"),
    ],
)
def test_invalid_arguments_raise(kwargs, message):
    with pytest.raises(ValueError, match=message):
        RotaryPosition(**kwargs)


def test_mismatched_head_width_raises():
    with pytest.raises(ValueError, match=r"at most the `key_dim`.*4.*=6"):
        MultiHeadAttention(
            N, 4, attention_position=RotaryPosition(rotary_dim=6)
        )
    with pytest.raises(ValueError, match=r"`key_dim` must be even.*key_dim=5"):
        MultiHeadAttention(N, 5, attention_position=RotaryPosition())
    MultiHeadAttention(N, 5, attention_position=RotaryPosition(rotary_dim=4))
