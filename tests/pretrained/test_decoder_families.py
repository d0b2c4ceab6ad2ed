"""Decoder-only families against transformers, one configuration of GPT each."""

import functools
import json
import pathlib
import re
import shutil

import keras
import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from keras_attn import pretrained
from keras_attn.decoding import BeamSearch
from keras_attn.layers import RotaryPosition
from keras_attn.layers.quick_gelu import quick_gelu
from keras_attn.models import GPT
from keras_attn.pretrained.decoder_families import DECODERS
from keras_attn.pretrained.families import FAMILIES, registered
from keras_attn.pretrained.tensor_names import Part
from tools.family_list import with_list

torch = pytest.importorskip("torch")

import transformers

ROOT = pathlib.Path(__file__).parents[2]
SIZE, LAYERS, WIDTH, HEADS = 17, 2, 16, 4
PAD, START, END = 0, 1, 2
CONFIG = {
    "vocab_size": SIZE,
    "hidden_size": WIDTH,
    "intermediate_size": 20,
    "num_hidden_layers": LAYERS,
    "num_attention_heads": HEADS,
    "num_key_value_heads": 2,
    "max_position_embeddings": 32,
    "pad_token_id": PAD,
    "bos_token_id": START,
    "eos_token_id": END,
    "attention_dropout": 0.1,
    "attn_implementation": "eager",
}
IDS = np.array([[3, 4, 5, 6, 7, 8], [9, 3, 12, 10, 11, 4]], "int32")
PROMPTS = [[5, 6, 7, 8], [9, 4, 3], [16]]


def rope(theta=100.0, **others):
    return {
        "rope_parameters": {
            "rope_type": "default",
            "rope_theta": theta,
            **others,
        }
    }


LLAMA3 = {
    "rope_type": "llama3",
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 16,
}
YARN = {
    "rope_type": "yarn",
    "factor": 4.0,
    "original_max_position_embeddings": 8,
}
DYNAMIC = {"rope_type": "dynamic", "factor": 4.0}
LONGROPE = {
    "rope_type": "longrope",
    "short_factor": [1.0, 1.5],
    "long_factor": [1.0, 4.0],
}
TYPES = ["sliding_attention", "full_attention"]
_GEMMA = {
    "head_dim": 6,
    "layer_types": TYPES,
    "sliding_window": 3,
    "query_pre_attn_scalar": 6,
}
_EXPERTS = {"num_local_experts": 5, "num_experts_per_tok": 2}
_GPT_OSS = {
    **_EXPERTS,
    "head_dim": 6,
    "sliding_window": 3,
    "swiglu_limit": 1.5,
    **rope(**YARN, truncate=False),
}
# The name of a config class and the values that differ from `CONFIG`.
FORMS = {
    "llama": ("Llama", {}),
    "gemma2": (
        "Gemma2",
        {
            **_GEMMA,
            "attn_logit_softcapping": 0.5,
            "final_logit_softcapping": 3.0,
        },
    ),
    "gpt_neox": (
        "GPTNeoX",
        {**rope(partial_rotary_factor=0.5), "hidden_dropout": 0.2},
    ),
    "gemma3_text": (
        "Gemma3Text",
        {
            **_GEMMA,
            "rope_parameters": {
                "sliding_attention": {
                    "rope_type": "default",
                    "rope_theta": 10.0,
                },
                "full_attention": {
                    "rope_type": "linear",
                    "rope_theta": 500.0,
                    "factor": 2.0,
                },
            },
        },
    ),
    "phi3": ("Phi3", {"sliding_window": 3, "resid_pdrop": 0.2}),
    "qwen2": ("Qwen2", rope()),
    "qwen3": ("Qwen3", {"head_dim": 6}),
    "mistral": ("Mistral", {"sliding_window": 3, "head_dim": 6}),
    "smollm3": ("SmolLM3", {"no_rope_layer_interval": 2}),
    "olmo2": ("Olmo2", {}),
    "mixtral": ("Mixtral", {**_EXPERTS, "sliding_window": 3}),
    "gpt_oss": ("GptOss", _GPT_OSS),
    # Options of the families.
    "llama, tied": ("Llama", {"tie_word_embeddings": True, **rope(500)}),
    "llama, biases": ("Llama", {"attention_bias": True, "mlp_bias": True}),
    "llama, all heads": ("Llama", {"num_key_value_heads": HEADS}),
    "llama, llama3": ("Llama", rope(500.0, **LLAMA3)),
    "llama, yarn": ("Llama", rope(500.0, **YARN)),
    "llama, linear": ("Llama", rope(rope_type="linear", factor=2.0)),
    "llama, dynamic": (
        "Llama",
        {**rope(**DYNAMIC), "max_position_embeddings": 4},
    ),
    "mistral, no window": ("Mistral", {"sliding_window": None}),
    "qwen2, window": (
        "Qwen2",
        {
            "use_sliding_window": True,
            "sliding_window": 3,
            "max_window_layers": 1,
        },
    ),
    "qwen3, window": (
        "Qwen3",
        {
            "head_dim": 4,
            "use_sliding_window": True,
            "sliding_window": 2,
            "layer_types": TYPES,
        },
    ),
    "smollm3, window": (
        "SmolLM3",
        {
            "no_rope_layers": [1, 0],
            "use_sliding_window": True,
            "sliding_window": 3,
        },
    ),
    "gemma2, other scale": (
        "Gemma2",
        {**_GEMMA, "query_pre_attn_scalar": 9, "attn_logit_softcapping": None},
    ),
    "gemma3, other scale": (
        "Gemma3Text",
        {
            **_GEMMA,
            "query_pre_attn_scalar": 9,
            "final_logit_softcapping": 2.0,
        },
    ),
    "phi3, longrope": (
        "Phi3",
        {
            **rope(**LONGROPE),
            "original_max_position_embeddings": 4,
            "tie_word_embeddings": True,
        },
    ),
    "phi3, partial": (
        "Phi3",
        {**rope(partial_rotary_factor=0.5), "num_key_value_heads": 1},
    ),
    # The loss of transformers does not support `generate`.
    "mixtral, loss": (
        "Mixtral",
        {
            **_EXPERTS,
            "output_router_logits": True,
            "router_aux_loss_coef": 0.5,
        },
    ),
    "gpt_neox, sequential": (
        "GPTNeoX",
        {"use_parallel_residual": False, **rope(partial_rotary_factor=1.0)},
    ),
}
# One of each family.
PLAIN = tuple(form for form in FORMS if "," not in form)


def theirs(form, seed=0, kind="ForCausalLM", **config):
    """Returns a transformers model with random weights."""
    name, options = FORMS[form]
    config = {**CONFIG, **options, **config}
    if name == "GPTNeoX":
        config.pop("num_key_value_heads")
    config = getattr(transformers, f"{name}Config")(**config)
    name = name.replace("3Text", "3" if kind == "ForCausalLM" else "3Text")
    model = getattr(transformers, f"{name}{kind}")(config)
    draw = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for path, tensor in model.named_parameters():
            tensor.normal_(std=0.5, generator=draw)
            if "norm" in path and "weight" in path and "Gemma" not in name:
                tensor.add_(1.0)
    return model.eval()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Returns a function from a form to their model and its folder."""

    @functools.cache
    def saved(form):
        path = tmp_path_factory.mktemp("decoder")
        model = theirs(form)
        model.save_pretrained(path)
        return model, path

    return saved


def logits(model, ids=IDS):
    with torch.no_grad():
        return model(input_ids=torch.tensor(ids).long()).logits.numpy()


def to_numpy(tensor):
    return keras.ops.convert_to_numpy(tensor)


def read_config(path):
    return json.loads((path / "config.json").read_text("utf-8"))


def changed(path, tmp_path, *removed, **values):
    """Returns a copy of a folder with other values in its config.

    A `generation_config.json` would have other end ids.
    """
    ignored = shutil.ignore_patterns("generation_config.json")
    shutil.copytree(path, tmp_path / "changed", ignore=ignored)
    config = {k: v for k, v in read_config(path).items() if k not in removed}
    text = json.dumps(config | values)
    (tmp_path / "changed/config.json").write_text(text, "utf-8")
    return tmp_path / "changed"


def their_model(path):
    return transformers.AutoModelForCausalLM.from_pretrained(
        path, attn_implementation="eager"
    ).eval()


@pytest.mark.every_backend
@pytest.mark.parametrize("form", FORMS)
def test_same_logits(form, folder):
    model, path = folder(form)
    expected = logits(model)
    assert np.abs(expected).max() > 0.5
    ours = pretrained.load(path)
    assert type(ours) is GPT
    close(ours, expected)


def close(ours, expected):
    """Checks logits up to 1e-5 of the largest one."""
    largest = np.abs(expected).max()
    np.testing.assert_allclose(
        to_numpy(ours(IDS)) / largest, expected / largest, rtol=0, atol=1e-5
    )


def continued(model, **kwargs):
    """Returns the new tokens of transformers for left-padded prompts."""
    width = max(map(len, PROMPTS))
    rows = [[PAD] * (width - len(row)) + row for row in PROMPTS]
    ids = torch.tensor(rows)
    tokens = model.generate(
        input_ids=ids,
        attention_mask=(ids != PAD).long(),
        max_new_tokens=8,
        do_sample=False,
        # `generate` of GPT never returns these.
        suppress_tokens=[PAD, START],
        **kwargs,
    )[:, width:].numpy()
    missing = ((0, 0), (0, 8 - tokens.shape[1]))
    tokens = np.pad(tokens, missing, constant_values=PAD)
    # Its beam search fills rows with the end id if the padding id is 0.
    ended = np.cumsum(tokens == END, axis=1) - (tokens == END) > 0
    return np.where(ended, PAD, tokens)


@pytest.mark.every_backend
@pytest.mark.parametrize("form", PLAIN)
def test_same_tokens(form, folder):
    """Greedy search and four beams."""
    model, path = folder(form)
    ours = pretrained.load(path)
    found = ours.generate(PROMPTS, max_new_tokens=8).tokens[:, 0]
    np.testing.assert_array_equal(found, continued(model))
    strategy = BeamSearch(4, length_penalty=0.0)
    found = ours.generate(PROMPTS, max_new_tokens=8, strategy=strategy)
    expected = continued(
        model, num_beams=4, length_penalty=0.0, early_stopping="never"
    )
    np.testing.assert_array_equal(found.tokens[:, 0], expected)


def without_names(config):
    """Returns a config of GPT without the names of its layers."""
    return json.loads(re.sub(r'"name": "[^"]*"', '"name": ""', config))


@pytest.mark.parametrize("form", FORMS)
def test_save_round_trip(form, folder, tmp_path):
    model, path = folder(form)
    ours = pretrained.load(path)
    pretrained.save(ours, tmp_path, model_type=model.config.model_type)
    found = their_model(tmp_path)
    assert type(found) is type(model)
    # Queries absorb another scale of the scores, which rounds.
    exact = "other scale" not in form
    np.testing.assert_allclose(
        logits(found), logits(model), atol=0 if exact else 1e-5
    )
    again = pretrained.load(tmp_path)
    assert without_names(json.dumps(again.get_config())) == without_names(
        json.dumps(ours.get_config())
    )
    written = read_config(tmp_path)
    for key, value in read_config(path).items():
        # Filled in by transformers, or without effect here.
        if value is not None and exact and "window" not in key:
            assert written.get(key, value) == value or key in (
                "original_max_position_embeddings",
                "rope_parameters",
                "max_position_embeddings",
            ), key


@pytest.mark.parametrize("form", PLAIN)
def test_older_keys_of_positions(form, folder, tmp_path):
    """`rope_theta` and `rope_scaling`, as before transformers 5."""
    _, path = folder(form)
    values = read_config(path)["rope_parameters"]
    wide = values.get("full_attention", values)
    theta, partial = "rope_theta", "partial_rotary_factor"
    if form == "gpt_neox":
        theta, partial = "rotary_emb_base", "rotary_pct"
    old = {theta: wide["rope_theta"], "rope_scaling": None}
    if wide["rope_type"] != "default":
        old["rope_scaling"] = {
            "type": wide["rope_type"],
            **{
                key: value
                for key, value in wide.items()
                if key not in ("rope_type", "rope_theta")
            },
        }
    if "partial_rotary_factor" in wide:
        old[partial] = wide["partial_rotary_factor"]
    if "sliding_attention" in values:
        old["rope_local_base_freq"] = values["sliding_attention"]["rope_theta"]
    new = pretrained.load(path)
    older = pretrained.load(changed(path, tmp_path, "rope_parameters", **old))
    assert without_names(json.dumps(older.get_config())) == without_names(
        json.dumps(new.get_config())
    )


@pytest.mark.parametrize(
    "form, values",
    [
        ("gemma2", {"num_hidden_layers": 4}),
        (
            "gemma3_text",
            {"num_hidden_layers": 4, "sliding_window_pattern": 2},
        ),
        ("smollm3", {"num_hidden_layers": 4}),
        (
            "qwen2, window",
            {"num_hidden_layers": 4, "max_window_layers": 3},
        ),
    ],
    ids=["gemma2", "gemma3", "smollm3", "qwen2"],
)
def test_default_layer_types(form, values, tmp_path):
    """Published configs often have a rule instead of a list of layers."""
    lists = {"layer_types": None, "no_rope_layers": None}
    model = theirs(form, **values, **lists)
    model.save_pretrained(tmp_path)
    expected = pretrained.load(tmp_path)
    short = pretrained.load(changed(tmp_path, tmp_path, *lists, **values))
    assert short.sliding_window == expected.sliding_window
    close(short, logits(model))


@pytest.mark.parametrize("form", ["gpt_neox", "phi3", "llama, tied"])
def test_other_files(form, folder, tmp_path):
    """Without the prefix, with buffers, with a tied head, and in shards."""
    model, path = folder(form)
    expected = pretrained.load(path)
    tensors = load_file(path / "model.safetensors")
    head = "embed_out.weight" if form == "gpt_neox" else "lm_head.weight"
    prefix = "gpt_neox." if form == "gpt_neox" else "model."
    module = "attention" if form == "gpt_neox" else "self_attn"
    if model.config.tie_word_embeddings:
        tensors[head] = tensors[f"{prefix}embed_tokens.weight"]
    buffer = np.ones(2, "float32")
    for number in range(LAYERS):
        name = f"{prefix}layers.{number}.{module}.rotary_emb.inv_freq"
        tensors[name] = buffer
    bare = {k.removeprefix(prefix): value for k, value in tensors.items()}
    shutil.copytree(path, tmp_path / "bare")
    save_file(bare, tmp_path / "bare/model.safetensors")
    pretrained.save(
        expected, tmp_path / "shards", 1e-6, model.config.model_type
    )
    assert len(list((tmp_path / "shards").glob("*.safetensors"))) > 5
    np.testing.assert_array_equal(
        logits(their_model(tmp_path / "shards")), logits(model)
    )
    for name in ("bare", "shards"):
        found = pretrained.load(tmp_path / name)
        np.testing.assert_array_equal(
            to_numpy(found(IDS)), to_numpy(expected(IDS))
        )


def test_several_end_ids(folder, tmp_path):
    model, path = folder("llama")
    ends = [END, *logits(model).argmax(-1)[:, -1].tolist()]
    ends = list(dict.fromkeys(ends))
    ours = pretrained.load(changed(path, tmp_path, eos_token_id=ends))
    assert ours.end_id == tuple(ends)
    decoded = ours.generate(IDS, max_new_tokens=4)
    assert decoded.lengths.ravel().tolist() == [1, 1]
    pretrained.save(ours, tmp_path)
    assert read_config(tmp_path)["eos_token_id"] == ends


@pytest.mark.parametrize(
    "form, values, message",
    [
        ("llama", {"attention_bias": True}, "`attention_bias` .*false.*true"),
        ("llama", {"mlp_bias": True}, "`attention_bias` .*true.*false"),
        ("llama", {"hidden_act": "mish"}, "`hidden_act` .*must be one of"),
        ("llama", {"num_key_value_heads": 3}, "`num_key_value_heads` .*divide"),
        ("llama", {"head_dim": 6}, r"`.*q_proj.weight` .*\(24, 16\)"),
        ("llama", {"head_dim": 0}, "`head_dim` .*positive integer"),
        ("llama", {"num_hidden_layers": 3}, r"hold a tensor `model.layers\.2"),
        ("llama", {"num_hidden_layers": 1}, r"others.*model\.layers\.1\."),
        ("llama", {"vocab_size": 18}, r"`model.embed_tokens.weight` .*18"),
        ("llama", {"intermediate_size": 21}, "`.*gate_proj.weight` .*21"),
        ("llama", {"rms_norm_eps": 0}, "`rms_norm_eps` .*greater than 0"),
        ("llama", {"attention_dropout": 1}, r"`attention_dropout` .*\[0, 1"),
        ("llama", {"eos_token_id": SIZE}, r"`eos_token_id` .*\[0, 17"),
        (
            "llama",
            rope(rope_type="mrope"),
            "`rope_parameters` .*one of the types.*'mrope'",
        ),
        (
            "llama",
            {"rope_scaling": {"type": "linear"}},
            "`rope_scaling` .*'factor'",
        ),
        ("llama", rope(factor=2.0), "`rope_parameters` .*'factor'"),
        ("llama", {"rope_parameters": [1]}, "`rope_parameters` .*an object"),
        (
            "llama",
            rope(partial_rotary_factor=0.5),
            "`partial_rotary_factor` .*1.0 to be read.*0.5",
        ),
        (
            "llama",
            {"partial_rotary_factor": 0.5},
            "`partial_rotary_factor` .*1.0 to be read.*0.5",
        ),
        (
            "llama",
            {"rope_theta": 500.0},
            "`rope_theta` .*must equal .*`rope_parameters`.*500.0",
        ),
        (
            "llama",
            rope(**DYNAMIC, original_max_position_embeddings=8),
            "`original_max_position_embeddings` .*=32 .*8",
        ),
        (
            "gpt_neox",
            rope(partial_rotary_factor=0.75),
            "`rope_parameters` .*even.*3",
        ),
        (
            "gpt_neox",
            rope(partial_rotary_factor=1.5),
            "`rotary_pct` .*at most 1.*1.5",
        ),
        ("gpt_neox", {"attention_bias": False}, "`attention_bias` .*true"),
        ("mistral", {"layer_types": TYPES}, "`layer_types` .*null"),
        ("qwen2", {"layer_types": TYPES}, "`layer_types` .*without a `sliding"),
        ("qwen3", {"layer_types": TYPES[:1]}, "`layer_types` .*2 layers"),
        (
            "qwen3",
            {"layer_types": ["chunked_attention"] * 2},
            "`layer_types` .*'full_attention'.*chunked",
        ),
        ("qwen3", {"attention_bias": True}, "`attention_bias` .*false"),
        ("smollm3", {"no_rope_layers": [1, 2]}, "`no_rope_layers` .*0 or 1"),
        ("smollm3", {"mlp_bias": True}, "`attention_bias` .*true"),
        (
            "gemma2",
            {"use_bidirectional_attention": True},
            "`use_bidirectional_attention` .*false",
        ),
        ("gemma2", {"attn_logit_softcapping": 0}, "`attn_logit_soft.*than 0"),
        ("gemma2", {"query_pre_attn_scalar": 0}, "`query_pre_attn.*than 0"),
        (
            "gemma3_text",
            {"attn_logit_softcapping": 5.0},
            "`attn_logit_softcapping` .*null.*5.0",
        ),
        (
            "gemma3_text",
            rope(),
            "`rope_parameters` .*only have the keys.*rope_theta",
        ),
        ("olmo2", {"attention_bias": True}, "`attention_bias` .*false"),
        ("mixtral", {"num_local_experts": 4}, r"`.*gate.weight` .*\(4, 16\)"),
        ("mixtral", {"intermediate_size": 21}, r"`.*0.w1.weight` .*\(21, 16"),
        ("mixtral", {"num_experts_per_tok": 6}, "`num_experts_per_tok` .*=5"),
        ("mixtral", {"router_jitter_noise": 0.1}, "`router_jitter_.*0.0 to be"),
        (
            "mixtral",
            {"router_aux_loss_coef": -1, "output_router_logits": True},
            "`router_aux_loss_coef` .*at least 0.*-1",
        ),
        ("gpt_oss", {"swiglu_alpha": 1.0}, "`swiglu_alpha` .*1.702"),
        ("gpt_oss", {"intermediate_size": 21}, r"`.*gate_up_proj` .*5, 16, 42"),
        (
            "gpt_oss",
            {"quantization_config": {"quant_method": "mxfp4"}},
            "`quantization_config` .*must be null.*mxfp4",
        ),
        (
            "phi3",
            rope(**LONGROPE | {"long_factor": [1.0]}),
            "`rope_parameters` .*'long_factor'.*1",
        ),
    ],
)
@pytest.mark.one_backend
def test_invalid_config_raises(form, values, message, folder, tmp_path):
    _, path = folder(form)
    with pytest.raises(ValueError, match=message) as info:
        pretrained.load(changed(path, tmp_path, **values))
    assert "in config.json" in str(info.value) or "safetensors" in str(
        info.value
    )
    assert "\n" not in str(info.value)


LLAMA = {
    "num_layers": LAYERS,
    "num_heads": 2,
    "hidden_dim": 8,
    "intermediate_dim": 12,
    "dropout": 0.0,
    "attention_dropout": 0.0,
    "activation": "silu",
    "gated": True,
    "normalization": "rms_norm",
    "use_bias": False,
    "position_embedding": None,
}


def gpt(**options):
    options = {"attention_position": RotaryPosition(), **LLAMA, **options}
    return GPT(SIZE, **options)


@pytest.mark.parametrize(
    "options, written",
    [
        ({}, "llama"),
        ({"sliding_window": 3}, "mistral"),
        ({"use_qkv_bias": True}, "qwen2"),
        ({"qk_norm": "head"}, "qwen3"),
        ({"sliding_window": [3, None], "use_qkv_bias": True}, "qwen2"),
        ({"normalize_first": False, "normalize_output": True}, None),
        (
            {
                "normalize_first": False,
                "normalize_output": True,
                "qk_norm": "all_heads",
            },
            "olmo2",
        ),
        ({"dropout": 0.1}, "phi3"),
        ({"num_experts": 4}, "mixtral"),
        (
            {
                "num_experts": 4,
                "use_bias": True,
                "use_sinks": True,
                "gate_limit": 7.0,
                "activation": quick_gelu,
            },
            "gpt_oss",
        ),
    ],
)
@pytest.mark.one_backend
def test_save_takes_the_first_family_that_fits(options, written, tmp_path):
    model = gpt(**options)
    if written is None:
        with pytest.raises(ValueError, match=r"OLMo 2 .*qk_norm='all_heads'"):
            pretrained.save(model, tmp_path)
        return
    pretrained.save(model, tmp_path)
    assert read_config(tmp_path)["model_type"] == written


def test_a_family_can_be_chosen(tmp_path):
    model = gpt()
    pretrained.save(model, tmp_path, model_type="mistral")
    config = read_config(tmp_path)
    assert config["model_type"] == "mistral" and not config["sliding_window"]
    found = their_model(tmp_path)
    assert type(found).__name__ == "MistralForCausalLM"
    close(model, logits(found))


@pytest.mark.parametrize(
    "options, message",
    [
        ({"use_sinks": True}, "Llama model .*use_sinks=False.*True"),
        ({"qk_norm": "head", "layer_scale": 0.1}, "Qwen 3.*layer_scale=None"),
        ({"max_sequence_length": None}, "Llama .*a max_sequence_length"),
        ({"attention_position": None}, "Llama .*RotaryPosition.*=None"),
        (
            {"attention_position": RotaryPosition(layout="interleaved")},
            "Llama .*layout 'halves'",
        ),
        (
            {"attention_position": [RotaryPosition(), RotaryPosition(2.0)]},
            "Llama .*equal in layers",
        ),
        (
            {
                "attention_position": RotaryPosition(rotary_dim=2),
                "qk_norm": "head",
            },
            "Qwen 3 .*rotary_dim=4.*rotary_dim=2",
        ),
        (
            {"sliding_window": [2, 3], "qk_norm": "head"},
            r"Qwen 3 .*one sliding_window. Received: .*\(2, 3\)",
        ),
        (
            {"num_heads": 3, "key_dim": 4},
            "num_heads that divide hidden_dim.*num_heads=3",
        ),
        (
            {
                "attention_position": RotaryPosition(
                    scaling={**DYNAMIC, "original_max_position_embeddings": 8}
                )
            },
            "max_sequence_length that is .*max_sequence_length=1024",
        ),
    ],
)
@pytest.mark.one_backend
def test_unsupported_model_raises(options, message, tmp_path):
    with pytest.raises(ValueError, match=message):
        pretrained.save(gpt(**options), tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.one_backend
@pytest.mark.parametrize(
    "values, longest",
    [
        ({}, 32),
        (rope(rope_type="linear", factor=4.0), 128),
        (rope(**DYNAMIC), 128),
        (rope(**YARN), 32),
        (rope(**YARN | {"original_max_position_embeddings": 32}), 128),
        (rope(**{**YARN, "factor": None}), 32),
        (rope(**LLAMA3), 32),
    ],
)
def test_length_of_sequences(values, longest, folder, tmp_path):
    """Scaling is for sequences beyond the length of the training."""
    _, path = folder("llama")
    model = pretrained.load(changed(path, tmp_path, **values))
    assert model.max_sequence_length == longest
    pretrained.save(model, tmp_path / "again")
    again = pretrained.load(tmp_path / "again")
    assert again.max_sequence_length == longest
    one, other = again.attention_position, model.attention_position
    assert one.scaling == other.scaling


@pytest.mark.one_backend
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("repeats", [1, 3])
def test_parts_of_a_tensor(axis, repeats):
    sizes = 4, 2, 1
    shape = [5, 5]
    shape[axis] = sum(sizes) * repeats
    tensor = np.arange(np.prod(shape)).reshape(shape)
    parts = [Part(i, sizes, axis, repeats) for i in range(3)]
    taken = [part.take(tensor) for part in parts]
    for part, array, size in zip(parts, taken, sizes, strict=True):
        assert array.shape[axis] == size * repeats
        assert part.shape_of_tensor(array.shape) == tuple(shape)
    np.testing.assert_array_equal(parts[0].join(taken), tensor)
    # The second part of the first sequence starts after the first part.
    first = np.moveaxis(taken[1], axis, 0)[0]
    np.testing.assert_array_equal(first, np.moveaxis(tensor, axis, 0)[4])


@pytest.mark.one_backend
def test_every_family_is_tested():
    names = {FORMS[form][0] for form in PLAIN}
    assert {decoder.model_type for decoder in DECODERS} == set(PLAIN)
    assert len(names) == len(DECODERS)


@pytest.mark.one_backend
def test_the_guide_and_the_docstrings_list_every_family():
    guide = (ROOT / "docs/guides/pretrained.md").read_text("utf-8")
    section = guide.partition("## Families")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| (`[^|]*) \|", section, re.MULTILINE)
    assert rows[0] == "`model_type`"
    listed = re.findall("`([^`]+)`", " ".join(rows[1:]))
    types = [family.model_type for family in FAMILIES]
    assert sorted(listed) == sorted(types)
    below = guide.partition("## Decoder-only models")[2].partition("\n## ")[0]
    listed = re.findall(r"^\| `([a-z0-9_]+)` \| [A-Z]", below, re.MULTILINE)
    assert listed == [decoder.model_type for decoder in DECODERS]
    for function in (pretrained.load, pretrained.save):
        missing = [t for t in types if f'`"{t}"`' not in function.__doc__]
        assert missing == [], function


@pytest.mark.one_backend
def test_the_list_of_families_is_generated_from_the_code():
    guide = (ROOT / "docs/guides/pretrained.md").read_text("utf-8")
    assert with_list(guide) == guide, "run python -m tools.family_list"
    changed = guide.replace("`smollm3`", "")
    assert changed != with_list(changed)


@pytest.fixture
def no_other_families(monkeypatch):
    """Removes families that a test or a guide has registered."""
    kept = dict(registered)
    registered.clear()
    yield
    registered.clear()
    registered.update(kept)


def starcoder2(path):
    settings = CONFIG | {"sliding_window": 3, "residual_dropout": 0.25}
    torch.manual_seed(0)
    config = transformers.Starcoder2Config(**settings)
    theirs = transformers.Starcoder2ForCausalLM(config).eval()
    with torch.no_grad():
        for weight in theirs.parameters():
            weight.normal_(std=0.3)
    theirs.save_pretrained(path)
    with torch.no_grad():
        return theirs(torch.tensor(IDS).long()).logits.numpy()


STARCODER2 = {
    "model_type": "starcoder2",
    "architecture": "Starcoder2ForCausalLM",
    "like": "mistral",
    "arguments": {"gated": False, "normalization": "layer_norm"},
    "config_keys": {
        "activation": ("hidden_act", "gelu_pytorch_tanh"),
        "dropout": ("residual_dropout", 0.0),
        "embedding_dropout": ("embedding_dropout", 0.0),
        "epsilon": ("norm_epsilon", 1e-5),
        "use_bias": ("use_bias", True),
    },
    "tensor_names": {
        "feed_forward/inner": "mlp.c_fc",
        "feed_forward/outer": "mlp.c_proj",
    },
    "defaults": {"sliding_window": None, "tie_word_embeddings": True},
}


def test_a_registered_family_equals_transformers(tmp_path, no_other_families):
    expected = starcoder2(tmp_path)
    with pytest.raises(ValueError, match="`model_type`"):
        pretrained.load(tmp_path)
    pretrained.register_family(**STARCODER2)
    model = pretrained.load(tmp_path)
    assert (model.dropout, model.sliding_window) == (0.25, 3)
    ours = keras.ops.convert_to_numpy(model(IDS, training=False))
    np.testing.assert_allclose(ours, expected, atol=1e-5)
    copy = tmp_path / "copy"
    pretrained.save(model, copy)
    before, after = (
        load_file(p / "model.safetensors") for p in (tmp_path, copy)
    )
    assert before.keys() == after.keys()
    for name in before:
        np.testing.assert_array_equal(before[name], after[name], name)
    values = json.loads((copy / "config.json").read_text("utf-8"))
    assert values["architectures"] == ["Starcoder2ForCausalLM"]
    assert values["residual_dropout"] == 0.25
    again = transformers.Starcoder2Config.from_pretrained(copy)
    assert again.norm_epsilon == 1e-5 and again.tie_word_embeddings


@pytest.mark.one_backend
@pytest.mark.parametrize(
    ("argument", "layer", "name", "message"),
    [
        ("tensor_names", "feed_forward/inner", "mlp.fc", "mlp.fc"),
        (
            "tensor_names",
            "around_attention/norm",
            None,
            "around_attention/norm",
        ),
        ("arguments", "normalization", "rms_norm", "bias"),
    ],
)
def test_a_wrong_description_is_refused(
    tmp_path, no_other_families, argument, layer, name, message
):
    starcoder2(tmp_path)
    changed = {**STARCODER2[argument], layer: name}
    pretrained.register_family(**{**STARCODER2, argument: changed})
    with pytest.raises(ValueError, match=message):
        pretrained.load(tmp_path)


@pytest.mark.one_backend
def test_a_registered_family_with_experts(tmp_path, no_other_families):
    pretrained.register_family(
        "mine",
        "MineForCausalLM",
        like="mixtral",
        arguments={"gated": False},
        tensor_names={
            "feed_forward/router": "moe.router",
            "feed_forward/inner_experts": "moe.experts.{}.up",
        },
    )
    model = gpt(num_experts=3, gated=False)
    pretrained.save(model, tmp_path, model_type="mine")
    names = load_file(tmp_path / "model.safetensors").keys()
    found = {name.split(".", 3)[3] for name in names if ".0." in name}
    experts = {f"moe.experts.{row}.up.weight" for row in range(3)}
    assert found >= {*experts, "moe.router.weight"}
    assert not any("w3" in name for name in names)
    again = pretrained.load(tmp_path)
    np.testing.assert_array_equal(to_numpy(again(IDS)), to_numpy(model(IDS)))


@pytest.mark.one_backend
def test_a_registered_family_with_few_norms(tmp_path, no_other_families):
    options = {"normalization": "bias_free_layer_norm"}
    options |= {"normalize_first": True, "skip_first_norm": True}
    pretrained.register_family("mine", "MineForCausalLM", arguments=options)
    model = gpt(**options)
    pretrained.save(model, tmp_path, model_type="mine")
    names = load_file(tmp_path / "model.safetensors").keys()
    norms = {name for name in names if "input_layernorm" in name}
    assert norms == {"model.layers.1.input_layernorm.weight"}
    again = pretrained.load(tmp_path)
    np.testing.assert_array_equal(to_numpy(again(IDS)), to_numpy(model(IDS)))


@pytest.mark.one_backend
def test_the_defaults_of_a_registered_family(tmp_path, no_other_families):
    starcoder2(tmp_path)
    path = tmp_path / "config.json"
    values = json.loads(path.read_text("utf-8"))
    for key in (
        "rope_parameters",
        "max_position_embeddings",
        "sliding_window",
        "norm_epsilon",
        "tie_word_embeddings",
        "num_key_value_heads",
        "eos_token_id",
    ):
        values.pop(key, None)
    path.write_text(json.dumps(values), "utf-8")
    (tmp_path / "generation_config.json").unlink()
    defaults = {
        "rope_theta": 500.0,
        "max_position_embeddings": 64,
        "sliding_window": 5,
        "tie_word_embeddings": True,
        "num_key_value_heads": 2,
        "eos_token_id": 7,
    }
    pretrained.register_family(**{**STARCODER2, "defaults": defaults})
    model = pretrained.load(tmp_path)
    assert model.attention_position.max_wavelength == 500.0
    assert (model.max_sequence_length, model.sliding_window) == (64, 5)
    assert (model.num_key_value_heads, model.end_id) == (2, 7)
    assert model.tie_word_embeddings and model.epsilon == 1e-5
