"""GPT with the options of newer families, compared with `transformers`.

Each family is one configuration of `GPT`, with small random weights that are
copied into the model of `transformers`.
"""

import keras
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from keras import ops

from keras_attn.decoding import BeamSearch
from keras_attn.layers import RotaryPosition
from keras_attn.layers.gelu_tanh import gelu_tanh
from keras_attn.models import GPT
from tests.helpers.arrays import to_numpy
from tests.helpers.contract import randomize
from tests.helpers.weight_gradients import layer_gradients, weighted_sum

torch = pytest.importorskip("torch")

from transformers import (
    Gemma2Config,
    Gemma2ForCausalLM,
    Gemma3ForCausalLM,
    Gemma3TextConfig,
    GPTNeoXConfig,
    GPTNeoXForCausalLM,
    LlamaConfig,
    LlamaForCausalLM,
    Olmo2Config,
    Olmo2ForCausalLM,
    Qwen2Config,
    Qwen2ForCausalLM,
    Qwen3Config,
    Qwen3ForCausalLM,
    SmolLM3Config,
    SmolLM3ForCausalLM,
)

V, L, D, N, K, H, F = 13, 2, 16, 4, 2, 6, 10
EPSILON = 1e-3
IDS = np.array([[3, 4, 5, 6, 7, 8], [9, 3, 12, 10, 11, 4]], "int32")
WINDOW = 3

_MODERN = {
    "normalization": "rms_norm",
    "use_bias": False,
    "gated": True,
    "activation": "silu",
    "key_dim": H,
    "num_key_value_heads": K,
}
_GEMMA = {
    "normalize_output": True,
    "activation": gelu_tanh,
    "scale_embedding": True,
    "sliding_window": [WINDOW, None],
}
# Our options, and those of `transformers` beyond the common ones.
FAMILIES = {
    "llama": (
        LlamaForCausalLM,
        LlamaConfig,
        {"attention_position": lambda: RotaryPosition()},
        {},
    ),
    "llama3, untied": (
        LlamaForCausalLM,
        LlamaConfig,
        {
            "attention_position": lambda: RotaryPosition(500.0, scaling=LLAMA3),
            "tie_word_embeddings": False,
        },
        {"rope_parameters": {"rope_theta": 500.0}},
    ),
    "qwen2": (
        Qwen2ForCausalLM,
        Qwen2Config,
        {"attention_position": lambda: RotaryPosition(), "use_qkv_bias": True},
        {"layer_types": ["full_attention"] * L},
    ),
    "qwen3": (
        Qwen3ForCausalLM,
        Qwen3Config,
        {"attention_position": lambda: RotaryPosition(), "qk_norm": "head"},
        {"layer_types": ["full_attention"] * L},
    ),
    "olmo2": (
        Olmo2ForCausalLM,
        Olmo2Config,
        {
            "attention_position": lambda: RotaryPosition(),
            "qk_norm": "all_heads",
            "normalize_first": False,
            "normalize_output": True,
            "key_dim": None,
        },
        {"head_dim": None},
    ),
    "gemma2": (
        Gemma2ForCausalLM,
        Gemma2Config,
        {
            **_GEMMA,
            "attention_position": lambda: RotaryPosition(),
            "attention_soft_cap": 0.5,
            "logits_soft_cap": 3.0,
        },
        {
            "attn_logit_softcapping": 0.5,
            "final_logit_softcapping": 3.0,
            "query_pre_attn_scalar": H,
            "sliding_window": WINDOW,
            "layer_types": ["sliding_attention", "full_attention"],
            "hidden_activation": "gelu_pytorch_tanh",
        },
    ),
    "gemma3": (
        Gemma3ForCausalLM,
        Gemma3TextConfig,
        {
            **_GEMMA,
            "attention_position": lambda: [
                RotaryPosition(100.0),
                RotaryPosition(5000.0),
            ],
            "qk_norm": "head",
        },
        {
            "query_pre_attn_scalar": H,
            "sliding_window": WINDOW,
            "layer_types": ["sliding_attention", "full_attention"],
            "hidden_activation": "gelu_pytorch_tanh",
            "rope_parameters": {
                "sliding_attention": {
                    "rope_type": "default",
                    "rope_theta": 100.0,
                },
                "full_attention": {
                    "rope_type": "default",
                    "rope_theta": 5000.0,
                },
            },
        },
    ),
    "smollm3": (
        SmolLM3ForCausalLM,
        SmolLM3Config,
        {
            "attention_position": lambda: [RotaryPosition(), None],
            "key_dim": None,
        },
        {"no_rope_layers": [1, 0], "head_dim": None},
    ),
    "gpt_neox": (
        GPTNeoXForCausalLM,
        GPTNeoXConfig,
        {
            "attention_position": lambda: RotaryPosition(rotary_dim=2),
            "normalization": "layer_norm",
            "use_bias": True,
            "gated": False,
            "activation": "gelu",
            "key_dim": None,
            "num_key_value_heads": None,
            "use_parallel_residual": True,
            "tie_word_embeddings": False,
        },
        {
            "head_dim": None,
            "rms_norm_eps": None,
            "num_key_value_heads": None,
            "layer_norm_eps": EPSILON,
            "use_parallel_residual": True,
            "rope_parameters": {"partial_rotary_factor": 0.5},
        },
    ),
}
LLAMA3 = {
    "rope_type": "llama3",
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 64,
}
BY_LENGTH = {
    "dynamic": {
        "rope_type": "dynamic",
        "factor": 4.0,
        "original_max_position_embeddings": 4,
    },
    "longrope": {
        "rope_type": "longrope",
        "factor": 4.0,
        "original_max_position_embeddings": 4,
        "short_factor": [1.0, 1.5, 2.0],
        "long_factor": [1.0, 4.0, 6.0],
    },
}
for _name, _scaling in BY_LENGTH.items():
    FAMILIES[f"llama, {_name}"] = (
        LlamaForCausalLM,
        LlamaConfig,
        {
            "attention_position": lambda scaling=_scaling: RotaryPosition(
                500.0, scaling=scaling
            )
        },
        {
            "rope_parameters": {"rope_theta": 500.0, **_scaling},
            "max_position_embeddings": 4,
        },
    )
every_family = pytest.mark.parametrize("name", FAMILIES)


def make(name, **kwargs):
    options = {**_MODERN, **FAMILIES[name][2], **kwargs}
    options["attention_position"] = options["attention_position"]()
    model = GPT(
        V,
        num_layers=L,
        num_heads=N,
        hidden_dim=D,
        intermediate_dim=F,
        dropout=0.0,
        attention_dropout=0.0,
        epsilon=EPSILON,
        position_embedding=None,
        max_sequence_length=None,
        pad_id=0,
        start_id=1,
        end_id=2,
        **options,
    )
    return randomize(model, scale=0.5)


def twin(name, model):
    kind, config_class, _, extra = FAMILIES[name]
    options = {
        "vocab_size": V,
        "hidden_size": D,
        "intermediate_size": F,
        "num_hidden_layers": L,
        "num_attention_heads": N,
        "num_key_value_heads": K,
        "head_dim": H,
        "rms_norm_eps": EPSILON,
        "tie_word_embeddings": model.tie_word_embeddings,
        "attn_implementation": "eager",
        "max_position_embeddings": 512,
        "pad_token_id": 0,
        "bos_token_id": 1,
        "eos_token_id": 2,
        **extra,
    }
    if name.startswith("llama3"):
        options["rope_parameters"] = {**LLAMA3, **options["rope_parameters"]}
    elif name == "gpt_neox":
        options["rope_parameters"] |= {
            "rope_type": "default",
            "rope_theta": 10000.0,
        }
    elif name not in ("gemma3", *(f"llama, {one}" for one in BY_LENGTH)):
        options["rope_parameters"] = {
            "rope_type": "default",
            "rope_theta": 10000.0,
        }
    options = {k: v for k, v in options.items() if v is not None}
    theirs = kind(config_class(**options)).eval()
    arrays = {weight.path: to_numpy(weight) for weight in model.weights}
    for path, parameter in theirs.named_parameters():
        ours = our_array(name, path, arrays)
        assert ours.shape == tuple(parameter.shape), path
        parameter.data = torch.tensor(ours)
    return theirs


def our_array(name, path, arrays, gradients=False):
    """Returns our weight, or gradient, in the layout of `transformers`."""
    if "query_key_value" in path:
        what = {"weight": "kernel", "bias": "bias"}[path.rpartition(".")[2]]
        block = f"block_{path.split('.')[2]}/self_attention"
        parts = [
            np.moveaxis(arrays[f"{block}/{part}/{what}"], 0, -1)
            if what == "kernel"
            else arrays[f"{block}/{part}/{what}"]
            for part in ("query", "key", "value")
        ]  # (N, H, D) or (N, H)
        joined = np.stack(parts, axis=1)  # (N, 3, H, ...)
        return np.ascontiguousarray(joined.reshape(3 * D, *joined.shape[3:]))
    ours = our_path(name, path)
    array = arrays[ours]
    if ours.endswith("self_attention/attention_output/kernel"):
        array = array.reshape(-1, D).T
    elif ours.endswith("kernel"):
        array = array.reshape(array.shape[0], -1).T
    elif "self_attention" in ours:
        array = array.reshape(-1)
    is_norm = ours.endswith("scale") and name.startswith("gemma")
    if is_norm and not gradients:
        array = array - 1  # Gemma multiplies by 1 + w.
    return np.ascontiguousarray(array)


_PARTS = {
    "q_proj": "query",
    "k_proj": "key",
    "v_proj": "value",
    "o_proj": "attention_output",
    "dense": "attention_output",
    "q_norm": "query_norm",
    "k_norm": "key_norm",
    "gate_proj": "inner",
    "up_proj": "gate",
    "down_proj": "outer",
    "dense_h_to_4h": "inner",
    "dense_4h_to_h": "outer",
}


def our_path(name, path):
    if "embed_in" in path or "embed_tokens" in path:
        return "token_embedding/table/embeddings"
    if path.startswith(("lm_head", "embed_out")):
        return "output/kernel"
    what = path.rpartition(".")[2]
    norm = {"weight": "scale"}
    if name == "gpt_neox":
        norm = {"weight": "gamma", "bias": "beta"}
    if ".layers." not in path:
        return f"norm/{norm[what]}"
    _, _, index, *rest = path.split(".")
    block = f"block_{index}"
    if "layernorm" in rest[0]:
        place = {
            "input_layernorm": "around_attention/norm",
            "post_attention_layernorm": "around_feed_forward/norm",
            "pre_feedforward_layernorm": "around_feed_forward/norm",
            "post_feedforward_layernorm": "around_feed_forward/output_norm",
        }[rest[0]]
        if rest[0] == "post_attention_layernorm" and name in (
            "gemma2",
            "gemma3",
            "olmo2",
        ):
            place = "around_attention/output_norm"
        return f"{block}/{place}/{norm[what]}"
    part = "feed_forward" if rest[0] == "mlp" else "self_attention"
    what = {"weight": "kernel", "bias": "bias"}[what]
    if rest[1].endswith("_norm"):
        what = "scale"
    return f"{block}/{part}/{_PARTS[rest[1]]}/{what}"


@pytest.mark.every_backend
@every_family
def test_equals_transformers(name):
    """Logits and the gradients of all weights."""
    model = make(name)
    theirs = twin(name, model)
    upstream = np.random.default_rng(1).normal(size=(*IDS.shape, V))
    upstream = upstream.astype("float32")
    expected = theirs(torch.tensor(IDS, dtype=torch.long)).logits
    (expected * torch.tensor(upstream)).sum().backward()
    np.testing.assert_allclose(
        to_numpy(model(IDS)), expected.detach().numpy(), rtol=1e-5, atol=2e-5
    )
    _, found = layer_gradients(
        model, lambda: weighted_sum(model(IDS), upstream)
    )
    for path, parameter in theirs.named_parameters():
        ours = our_array(name, path, found, gradients=True)
        scale = max(1.0, float(parameter.grad.abs().max()))
        np.testing.assert_allclose(
            ours / scale,
            parameter.grad.numpy() / scale,
            atol=3e-5,
            err_msg=path,
        )


@pytest.mark.every_backend
@pytest.mark.parametrize("name", [n for n in FAMILIES if "llama, " not in n])
def test_cached_steps_equal_the_whole_pass(name):
    model = make(name)
    expected = to_numpy(model(IDS))
    state = model.start_decoding(ops.convert_to_tensor(IDS[:, :3]), 4)
    for index in range(2, IDS.shape[1]):
        token = ops.convert_to_tensor(IDS[:, index : index + 1])
        logits, state = model.decode_step(token, state)
        np.testing.assert_allclose(
            to_numpy(logits)[:, 0], expected[:, index], rtol=1e-5, atol=2e-5
        )


@pytest.mark.parametrize(
    "name",
    ["gemma2", "gpt_neox", "llama, dynamic", "llama, longrope", "smollm3"],
)
def test_greedy_search_finds_the_tokens_of_transformers(name):
    model = make(name)
    theirs = twin(name, model)
    prompt = IDS[:1, :3]
    found = model.generate(prompt, max_new_tokens=5).tokens[0, 0]
    expected = theirs.generate(
        torch.tensor(prompt, dtype=torch.long),
        max_new_tokens=5,
        do_sample=False,
        suppress_tokens=[0, 1],  # `generate` of GPT never returns these.
    )[0, 3:].numpy()
    np.testing.assert_array_equal(found[: len(expected)], expected)


@pytest.mark.parametrize("name", ["llama, dynamic", "gemma3"])
def test_beams_of_prompts_of_other_lengths_equal_separate_searches(name):
    """Lengths, for dynamic scaling, are those of each row."""
    model = make(name)
    strategy = BeamSearch(num_beams=2, num_return_sequences=2)
    prompts = [[3, 4, 5, 6, 7, 8], [6, 7]]
    found = model.generate(prompts, max_new_tokens=4, strategy=strategy)
    for row, prompt in enumerate(prompts):
        alone = model.generate([prompt], max_new_tokens=4, strategy=strategy)
        np.testing.assert_array_equal(found.tokens[row], alone.tokens[0])
        np.testing.assert_allclose(
            found.scores[row], alone.scores[0], rtol=1e-5
        )


@pytest.mark.parametrize(
    "name", ["gemma3", "gpt_neox", "llama, dynamic", "olmo2"]
)
def test_padding_and_saving_change_nothing(name, tmp_path):
    model = make(name)
    alone = to_numpy(model(IDS[:1, :4]))
    row = np.array([[0, 0, *IDS[0, :4]]], "int32")
    np.testing.assert_allclose(to_numpy(model(row))[:, 2:], alone, atol=1e-5)
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    np.testing.assert_allclose(
        to_numpy(loaded(IDS)), to_numpy(model(IDS)), atol=1e-6
    )


def test_layers_that_share_a_position_share_it_after_loading():
    local, wide = RotaryPosition(10.0), RotaryPosition(100.0)
    model = GPT(
        V,
        num_layers=4,
        num_heads=2,
        hidden_dim=8,
        attention_position=[local, None, wide, local],
    )
    loaded = GPT.from_config(model.get_config())
    first, none, third, last = loaded.attention_position
    assert none is None and first is last is not third
    assert [p.max_wavelength for p in (first, third)] == [10.0, 100.0]


# JAX would compile each operation for the shapes of each example.
@pytest.mark.one_backend("torch")
@given(
    options=st.fixed_dictionaries(
        {
            "normalization": st.sampled_from(
                ["layer_norm", "bias_free_layer_norm", "rms_norm"]
            ),
            "normalize_first": st.booleans(),
            "normalize_output": st.booleans(),
            "qk_norm": st.sampled_from([None, "head", "all_heads"]),
            "use_qkv_bias": st.sampled_from([None, False, True]),
            "attention_soft_cap": st.sampled_from([None, 1.0]),
            "logits_soft_cap": st.sampled_from([None, 2.0]),
            "use_sinks": st.booleans(),
            "use_parallel_residual": st.booleans(),
            "skip_first_norm": st.booleans(),
            "scale_embedding": st.booleans(),
            "sliding_window": st.sampled_from([None, 2, [None, 3]]),
            "num_key_value_heads": st.sampled_from([None, 1, 2]),
            "gated": st.booleans(),
            "layer_scale": st.sampled_from([None, 0.5]),
            "stochastic_depth": st.sampled_from([0.0, 0.5]),
        }
    ).filter(
        lambda o: (
            o["normalize_first"]
            or not (o["use_parallel_residual"] or o["skip_first_norm"])
        )
    )
)
@settings(max_examples=8, deadline=None)
def test_cached_steps_equal_the_whole_pass_with_any_options(options):
    model = make("llama", **options)
    expected = to_numpy(model(IDS))
    state = model.start_decoding(ops.convert_to_tensor(IDS[:, :4]), 2)
    token = ops.convert_to_tensor(IDS[:, 3:4])
    logits, state = model.decode_step(token, state)
    np.testing.assert_allclose(
        to_numpy(logits)[:, 0], expected[:, 3], rtol=1e-5, atol=2e-5
    )
    config = model.get_config()
    assert {name: config[name] for name in options} == options


def test_wrong_options_raise():
    for kwargs, message in (
        ({"normalization": "batch"}, "`normalization` must be one of"),
        ({"normalize_output": 1}, "`normalize_output` must be True or False"),
        ({"attention_soft_cap": -1.0}, "`attention_soft_cap` must be a num"),
        ({"logits_soft_cap": 0}, "`logits_soft_cap` must be a number"),
        ({"scale_embedding": None}, "`scale_embedding` must be True or"),
        ({"sliding_window": [2]}, "each of the 2 layers.*1 values"),
        ({"sliding_window": [2, 0]}, "`sliding_window` must be a positive"),
        (
            {"use_parallel_residual": True, "normalize_first": False},
            "requires `normalize_first`",
        ),
        (
            {"attention_position": lambda: [RotaryPosition()]},
            "each of the 2 layers.*1 positions",
        ),
        (
            {"attention_position": lambda: [RotaryPosition(), "rotary"]},
            "must be an AttentionPosition.*'rotary'",
        ),
    ):
        with pytest.raises(ValueError, match=message):
            make("llama", **kwargs)
