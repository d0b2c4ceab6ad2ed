"""The attention layers of the library pass `check_attention_layer`."""

import numpy as np
import pytest
from keras import ops

from keras_attn import cache, layers
from keras_attn.testing import (
    ATTENTION_LAYER_CHECKS,
    CheckFailure,
    check_attention_layer,
)
from tests.helpers.cases import once

N, H = 2, 4


def attention(**arguments):
    return layers.MultiHeadAttention(N, H, **arguments)


LAYERS = {
    "MultiHeadAttention": attention,
    "causal": lambda: attention(causal=True),
    "grouped heads, rotary": lambda: attention(
        num_key_value_heads=1, attention_position=layers.RotaryPosition()
    ),
    "window, gate": lambda: attention(sliding_window=2, use_gate=True),
    "ALiBiPosition": lambda: attention(
        attention_position=layers.ALiBiPosition(N)
    ),
    "T5Position": lambda: attention(
        attention_position=layers.T5Position(N, 8, 6)
    ),
    "TransformerXLPosition": lambda: attention(
        attention_position=layers.TransformerXLPosition(N, H)
    ),
    "XLNetPosition": lambda: attention(
        attention_position=layers.XLNetPosition(N, H)
    ),
    "ScoredAttention": layers.ScoredAttention,
    "additive": lambda: layers.ScoredAttention("additive"),
    "general": lambda: layers.ScoredAttention("general"),
    "cosine": lambda: layers.ScoredAttention("cosine"),
    "location": lambda: layers.ScoredAttention(
        "location", max_sequence_length=5
    ),
    "monotonic": lambda: layers.ScoredAttention(local="monotonic"),
    "predictive": lambda: layers.ScoredAttention(local="predictive"),
}


def decode(layer, x, drop=False):
    """Decodes with the layer's cache; `drop` leaves a token out of it."""
    rows, length, _ = x.shape
    slots = cache.empty(
        rows, length, 1, layer.num_key_value_heads, H, H, "float32"
    )
    found = []
    for index in range(length):
        positions, slots = cache.open_slots(slots, 1)
        step = cache.DecodingStep(positions)
        token = x[:, index : index + 1]
        output, slots = layer.decode_step(token, slots, 0, step)
        slots = cache.close_slots(slots, 1)
        found.append(output)
        if drop:
            slots = cache.empty(
                rows, length, 1, layer.num_key_value_heads, H, H, "float32"
            )
    return ops.concatenate(found, axis=1)


# On JAX and TensorFlow each layer compiles many small programs. The third case
# runs on TensorFlow too.
first, second, third, *others = LAYERS


@pytest.mark.every_backend
@pytest.mark.parametrize("name", [*once([first, second]), third, *once(others)])
def test_our_attention_layers_pass(name):
    layer = LAYERS[name]()
    has_cache = isinstance(layer, layers.MultiHeadAttention)
    ran = check_attention_layer(layer, decode=decode if has_cache else None)
    without = () if has_cache else ("cached_decoding",)
    assert ran == tuple(n for n in ATTENTION_LAYER_CHECKS if n not in without)


def test_a_cache_that_forgets_is_detected():
    def forgetful(layer, x):
        return decode(layer, x, drop=True)

    with pytest.raises(CheckFailure) as caught:
        check_attention_layer(attention(), decode=forgetful)
    assert caught.value.check == "cached_decoding"
    assert caught.value.shapes == {"query": (1, 2, 8), "value": (1, 2, 8)}


def test_weights_are_restored():
    layer = attention()
    check_attention_layer(layer, only=("batch_invariance",), hidden_dim=6)
    assert layer.built
    kept = [np.array(array) for array in layer.get_weights()]
    check_attention_layer(layer, only=("batch_invariance",), hidden_dim=6)
    for array, other in zip(layer.get_weights(), kept, strict=True):
        np.testing.assert_array_equal(array, other)
    assert not layer.get_weights()[1].any(), "the biases are still zero"


def test_exceptions():
    only = ("causality", "host_reads")
    ran = check_attention_layer(attention(), only, except_for=("host_reads",))
    assert ran == ("causality",)
    with pytest.raises(ValueError, match="`except_for` must be one of 'batch"):
        check_attention_layer(attention(), except_for=("causal",))
    with pytest.raises(ValueError, match="'cached_decoding' needs an argument"):
        check_attention_layer(attention(), only=("cached_decoding",))
