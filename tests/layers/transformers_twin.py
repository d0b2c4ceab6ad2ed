"""Attention layers of `transformers` with the weights of our layers."""

import numpy as np
import pytest

from tests.helpers.ops_cases import values

torch = pytest.importorskip("torch")

from transformers import LlamaConfig, T5Config
from transformers.models.llama import modeling_llama
from transformers.models.t5 import modeling_t5

# Projection names of Llama and T5 -> names in our weights.
_NAMES = {
    "q": "query",
    "k": "key",
    "v": "value",
    "o": "attention_output",
}


def llama(layer, width, base):
    """Returns the attention layer of Llama and a function that runs it.

    The function takes float tensors (B, T, D), int positions (B, T) and a bool
    mask (B, 1, T, T).
    """
    config = LlamaConfig(
        hidden_size=width,
        head_dim=layer.key_dim,
        num_attention_heads=layer.num_heads,
        num_key_value_heads=layer.num_key_value_heads,
        rope_parameters={"rope_type": "default", "rope_theta": base},
        attention_bias=False,
        attn_implementation="eager",
    )
    twin = modeling_llama.LlamaAttention(config, layer_idx=0)
    angles = modeling_llama.LlamaRotaryEmbedding(config)
    _load(twin, layer, "{}_proj")

    def run(x, positions, mask):
        positions = torch.tensor(positions, dtype=torch.long)
        output, _ = twin(x, angles(x, positions), _added(mask))
        return output

    return twin, run


def t5(layer, width):
    """Returns the attention layer of T5 and a function that runs it.

    T5 does not scale by 1 / sqrt(H): the scale is in its query weights.
    """
    position = layer.attention_position
    config = T5Config(
        d_model=width,
        d_kv=layer.key_dim,
        num_heads=layer.num_heads,
        relative_attention_num_buckets=position.num_buckets,
        relative_attention_max_distance=position.max_distance,
        is_decoder=not position.bidirectional,
        dropout_rate=0.0,
        attn_implementation="eager",
    )
    twin = modeling_t5.T5Attention(
        config, has_relative_attention_bias=True, layer_idx=0
    )
    _load(twin, layer, "{}", query_scale=layer.key_dim**-0.5)
    table = torch.tensor(values(position.table))
    twin.relative_attention_bias.weight.data = table

    def run(x, mask):
        return twin(x, mask=_added(mask))[0]

    return twin, run


def gradients(twin, style="{}_proj", query_scale=1.0):
    """Returns the gradients of a twin's projections, in our layer's shapes."""
    found = {}
    for short, name in _NAMES.items():
        gradient = getattr(twin, style.format(short)).weight.grad.numpy().T
        found[name] = gradient * (query_scale if short == "q" else 1.0)
    return found


def _load(twin, layer, style, query_scale=1.0):
    for short, name in _NAMES.items():
        kernel = values(_kernel(layer, name))
        rows = kernel.shape[0] if short != "o" else -1
        matrix = np.reshape(
            kernel, (rows, kernel.shape[-1]) if short == "o" else (rows, -1)
        )
        scale = query_scale if short == "q" else 1.0
        projection = getattr(twin, style.format(short))
        projection.weight.data = torch.tensor(scale * matrix.T)


def _kernel(layer, name):
    (kernel,) = [
        weight
        for weight in layer.weights
        if weight.path.endswith(f"/{name}/kernel")
    ]
    return kernel


def _added(mask):
    hidden = torch.finfo(torch.float32).min
    return torch.where(torch.tensor(mask), 0.0, hidden)
