"""Attention layers of `transformers` with the weights of our layers."""

import numpy as np
import pytest

from tests.helpers.ops_cases import values

torch = pytest.importorskip("torch")

from transformers import (
    Gemma2Config,
    GptOssConfig,
    LlamaConfig,
    Olmo2Config,
    Qwen3Config,
    T5Config,
)
from transformers.models.gemma2 import modeling_gemma2
from transformers.models.gpt_oss import modeling_gpt_oss
from transformers.models.llama import modeling_llama
from transformers.models.olmo2 import modeling_olmo2
from transformers.models.qwen3 import modeling_qwen3
from transformers.models.t5 import modeling_t5

# Projection names of Llama and T5 -> names in our weights.
_NAMES = {
    "q": "query",
    "k": "key",
    "v": "value",
    "o": "attention_output",
}


def llama(layer, width, base, scaling=None):
    """Returns the attention layer of Llama and a function that runs it.

    The function takes float tensors (B, T, D), int positions (B, T), a bool
    mask (B, 1, T, S) and, to decode with it, a cache of `transformers`.
    """
    parameters = {"rope_type": "default"} if scaling is None else scaling
    config = LlamaConfig(
        hidden_size=width,
        head_dim=layer.key_dim,
        num_attention_heads=layer.num_heads,
        num_key_value_heads=layer.num_key_value_heads,
        max_position_embeddings=parameters.get(
            "original_max_position_embeddings", 2048
        ),
        rope_parameters={"rope_theta": base, **parameters},
        attention_bias=False,
        attn_implementation="eager",
    )
    twin = modeling_llama.LlamaAttention(config, layer_idx=0)
    angles = modeling_llama.LlamaRotaryEmbedding(config)
    _load(twin, layer, "{}_proj")

    def run(x, positions, mask, cache=None):
        positions = torch.tensor(positions, dtype=torch.long)
        output, _ = twin(x, angles(x, positions), _added(mask), cache)
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


# Configuration, attention and rotary class of each model.
_MODERN = {
    "gemma2": (Gemma2Config, modeling_gemma2, "Gemma2"),
    "gpt_oss": (GptOssConfig, modeling_gpt_oss, "GptOss"),
    "olmo2": (Olmo2Config, modeling_olmo2, "Olmo2"),
    "qwen3": (Qwen3Config, modeling_qwen3, "Qwen3"),
}


def modern(kind, layer, width, base):
    """Returns the attention layer of another model, like `llama`.

    Args:
        kind: str. A key of `_MODERN`.
        layer: our layer, with the same options.
        width: int. D.
        base: float. Base of the rotary positions.
    """
    config_class, module, name = _MODERN[kind]
    config = config_class(
        hidden_size=width,
        head_dim=layer.key_dim,
        num_attention_heads=layer.num_heads,
        num_key_value_heads=layer.num_key_value_heads,
        num_hidden_layers=1,
        layer_types=["full_attention"],
        rope_parameters={"rope_type": "default", "rope_theta": base},
        attention_bias=layer.use_bias,
        attn_implementation="eager",
        rms_norm_eps=layer.qk_norm_epsilon,
        **(
            {
                "query_pre_attn_scalar": layer.key_dim,
                "attn_logit_softcapping": layer.soft_cap,
            }
            if kind == "gemma2"
            else {}
        ),
    )
    twin = getattr(module, f"{name}Attention")(config, layer_idx=0)
    angles = getattr(module, f"{name}RotaryEmbedding")(config)
    weights = {
        weight.path.removeprefix(f"{layer.path}/"): values(weight)
        for weight in layer.weights
    }
    for path, parameter in modern_parameters(twin).items():
        found = weights.pop(path)
        parameter.data = torch.tensor(_as_theirs(path, found, parameter))
    assert not weights, weights.keys()

    def run(x, positions, mask, cache=None):
        positions = torch.tensor(positions, dtype=torch.long)
        output, _ = twin(x, angles(x, positions), _added(mask), cache)
        return output

    return twin, run


def modern_parameters(twin):
    """Returns the parameters of a twin by the paths in our layer."""
    renamed = {
        "weight": "kernel",
        "bias": "bias",
        "q_norm.weight": "query_norm/scale",
        "k_norm.weight": "key_norm/scale",
        "sinks": "sinks",
    }
    found = {}
    for path, parameter in twin.named_parameters():
        if path not in renamed:
            projection, what = path.split("_proj.")
            path = f"{_NAMES[projection]}/{renamed[what]}"
        else:
            path = renamed[path]
        found[path] = parameter
    return found


def modern_gradients(twin, weights):
    """Returns the gradients of a twin, in the shapes of our weights."""
    return {
        path: np.reshape(parameter.grad.numpy().T, np.shape(weights[path]))
        for path, parameter in modern_parameters(twin).items()
    }


def _as_theirs(path, array, parameter):
    shape = tuple(parameter.shape)
    return np.ascontiguousarray(np.reshape(array, shape[::-1]).T)


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
