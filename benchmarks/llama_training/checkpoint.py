"""A random checkpoint in Hugging Face's format, which all contestants read."""

import json
import pathlib
import tempfile

import numpy as np
from safetensors.numpy import save_file


def write(case, seed=0):
    """Writes a folder with the config and the random weights of a Llama.

    The weights are larger than at initialization: an untrained model would
    repeat its last token. There are no special ids: every sequence is full.

    Args:
        case: dict of sizes.
        seed: int.

    Returns:
        `tempfile.TemporaryDirectory`, which its `name` leads to.
    """
    folder = tempfile.TemporaryDirectory()
    path = pathlib.Path(folder.name)
    config = {
        "model_type": "llama",
        "architectures": ["LlamaForCausalLM"],
        "vocab_size": case["vocabulary"],
        "hidden_size": case["width"],
        "intermediate_size": case["inner"],
        "num_hidden_layers": case["layers"],
        "num_attention_heads": case["heads"],
        "num_key_value_heads": case["key_value_heads"],
        "max_position_embeddings": 2048,
        "rms_norm_eps": 1e-6,
        "rope_theta": 10000.0,
        "hidden_act": "silu",
        "tie_word_embeddings": False,
        "attention_bias": False,
        "mlp_bias": False,
        "pad_token_id": None,
        "bos_token_id": None,
        "eos_token_id": None,
    }
    (path / "config.json").write_text(json.dumps(config), "utf-8")
    tensors = dict(_drawn(case, np.random.default_rng(seed)))
    save_file(tensors, path / "model.safetensors", {"format": "pt"})
    return folder


def _drawn(case, rng):
    """Yields (name, array)."""
    width, inner = case["width"], case["inner"]
    narrow = width // case["heads"] * case["key_value_heads"]

    def kernel(outputs, inputs, gain=1.0):
        array = rng.normal(scale=gain * inputs**-0.5, size=(outputs, inputs))
        return array.astype("float32")

    def norm():
        return rng.normal(1.0, 0.1, width).astype("float32")

    # As large as the sublayers' outputs.
    table = rng.normal(size=(case["vocabulary"], width)).astype("float32")
    yield "model.embed_tokens.weight", table
    for number in range(case["layers"]):
        layer = f"model.layers.{number}."
        yield layer + "input_layernorm.weight", norm()
        # Sharp enough that attention is not uniform.
        yield layer + "self_attn.q_proj.weight", kernel(width, width, 1.5)
        yield layer + "self_attn.k_proj.weight", kernel(narrow, width, 1.5)
        yield layer + "self_attn.v_proj.weight", kernel(narrow, width)
        yield layer + "self_attn.o_proj.weight", kernel(width, width)
        yield layer + "post_attention_layernorm.weight", norm()
        yield layer + "mlp.gate_proj.weight", kernel(inner, width)
        yield layer + "mlp.up_proj.weight", kernel(inner, width)
        yield layer + "mlp.down_proj.weight", kernel(width, inner)
    yield "model.norm.weight", norm()
    yield "lm_head.weight", kernel(case["vocabulary"], width, 3.0)
