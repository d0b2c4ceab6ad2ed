"""The decoder-only families, each a configuration of `GPT`.

Keys, defaults and names are those of Hugging Face's transformers. The papers
and model cards: Llama 2 (https://arxiv.org/abs/2307.09288) and 3
(https://arxiv.org/abs/2407.21783), Mistral (https://arxiv.org/abs/2310.06825),
Qwen 2 (https://arxiv.org/abs/2407.10671) and 3
(https://arxiv.org/abs/2505.09388), Gemma 2 (https://arxiv.org/abs/2408.00118)
and 3 (https://arxiv.org/abs/2503.19786), Phi-3
(https://arxiv.org/abs/2404.14219), SmolLM2 (https://arxiv.org/abs/2502.02737),
OLMo 2 (https://arxiv.org/abs/2501.00656), GPT-NeoX
(https://arxiv.org/abs/2204.06745), Pythia (https://arxiv.org/abs/2304.01373),
Mixtral (https://arxiv.org/abs/2401.04088) and gpt-oss
(https://arxiv.org/abs/2508.10925).
"""

from typing import Any

from keras_attn.layers.quick_gelu import quick_gelu
from keras_attn.pretrained.decoder_only import (
    PRE_NORM,
    QK_NORM,
    SEPARATE,
    Decoder,
    Field,
    Names,
    as_family,
)
from keras_attn.pretrained.layer_types import (
    FULL,
    SLIDING,
    Windows,
    layers_with_rope,
)
from keras_attn.pretrained.rope_parameters import Rope


def _defaults(
    pad: int | None = None,
    start: int | None = None,
    end: int | None = None,
    tied: bool = False,
    **others: Any,
) -> dict[str, Any]:
    return {
        "pad_token_id": pad,
        "bos_token_id": start,
        "eos_token_id": end,
        "tie_word_embeddings": tied,
        **others,
    }


def _common(
    epsilon: float = 1e-6,
    activation: str = "silu",
    activation_key: str = "hidden_act",
    epsilon_key: str = "rms_norm_eps",
) -> tuple[Field, ...]:
    return (
        Field("activation", activation_key, "activation", activation),
        Field("attention_dropout", "attention_dropout", "fraction", 0.0),
        Field("epsilon", epsilon_key, "positive", epsilon),
    )


def _experts(count, chosen):
    return (
        Field("num_experts", "num_local_experts", "size", count),
        Field("num_experts_per_tok", "num_experts_per_tok", "size", chosen),
    )


def _qwen_types(config, layers, window):
    first = config.index("max_window_layers", 28)
    return [
        FULL if window is None or i < first else SLIDING for i in range(layers)
    ]


def _smollm3_types(config, layers, window):
    rotated = layers_with_rope(config, layers)
    return [FULL if window is None or one else SLIDING for one in rotated]


def _gemma2_types(config, layers, window):
    return [FULL if i % 2 else SLIDING for i in range(layers)]


def _gemma3_types(config, layers, window):
    every = config.size("sliding_window_pattern", 6)
    return [SLIDING if (i + 1) % every else FULL for i in range(layers)]


_NO_ATTENTION_BIAS = {"attention_bias": False}
_MLP_BIAS = Field("use_bias", "mlp_bias", "flag", False)
AROUND = {
    "around_attention/norm": "input_layernorm",
    "around_attention/output_norm": "post_attention_layernorm",
    "around_feed_forward/norm": "pre_feedforward_layernorm",
    "around_feed_forward/output_norm": "post_feedforward_layernorm",
}
_ATTENTION = {
    ours: theirs for ours, theirs in SEPARATE.items() if "attention" in ours
}
_AFTER = {ours: theirs for ours, theirs in AROUND.items() if "output" in ours}
_GEMMA = {"normalize_output": True, "scale_embedding": True}
_GEMMA_DEFAULTS = _defaults(
    pad=0,
    start=2,
    end=1,
    tied=True,
    head_dim=256,
    num_key_value_heads=4,
    query_pre_attn_scalar=256,
)

# Of several families that fit a model, `save` takes the first.
DECODERS = (
    # Llama 2 and 3, SmolLM2.
    Decoder(
        "llama",
        "Llama",
        "LlamaForCausalLM",
        (*_common(), _MLP_BIAS),
        equal_biases=True,
        defaults=_defaults(start=1, end=2),
    ),
    Decoder(
        "mistral",
        "Mistral",
        "MistralForCausalLM",
        _common(),
        windows=Windows(4096),
        rope=Rope(longest=131072),
        defaults=_defaults(start=1, end=2, num_key_value_heads=8),
    ),
    # Qwen 2 and 2.5.
    Decoder(
        "qwen2",
        "Qwen 2",
        "Qwen2ForCausalLM",
        _common(),
        arguments={"use_qkv_bias": True},
        windows=Windows(4096, _qwen_types, switch=True, first=True),
        rope=Rope(longest=32768),
        defaults=_defaults(num_key_value_heads=32),
    ),
    Decoder(
        "qwen3",
        "Qwen 3",
        "Qwen3ForCausalLM",
        _common(),
        arguments={"qk_norm": "head"},
        only=_NO_ATTENTION_BIAS,
        windows=Windows(4096, _qwen_types, switch=True, first=True),
        rope=Rope(longest=32768),
        names=Names(norms={**PRE_NORM, **QK_NORM}),
        defaults=_defaults(num_key_value_heads=32, head_dim=128),
    ),
    Decoder(
        "smollm3",
        "SmolLM3",
        "SmolLM3ForCausalLM",
        (*_common(), _MLP_BIAS),
        equal_biases=True,
        windows=Windows(None, _smollm3_types, switch=True),
        rope=Rope(2_000_000.0, longest=32768),
        some_without_rope=True,
        defaults=_defaults(
            128004, 128000, 128001, tied=True, num_key_value_heads=4
        ),
    ),
    Decoder(
        "gemma2",
        "Gemma 2",
        "Gemma2ForCausalLM",
        (
            *_common(
                activation="gelu_pytorch_tanh",
                activation_key="hidden_activation",
            ),
            Field("attention_soft_cap", "attn_logit_softcapping", "cap", 50.0),
            Field("logits_soft_cap", "final_logit_softcapping", "cap", 30.0),
        ),
        arguments=_GEMMA,
        only={**_NO_ATTENTION_BIAS, "use_bidirectional_attention": False},
        windows=Windows(4096, _gemma2_types),
        rope=Rope(longest=8192),
        names=Names(norms=AROUND, offset=True),
        query_scale="self_attention/query/kernel",
        defaults=_GEMMA_DEFAULTS,
    ),
    Decoder(
        "gemma3_text",
        "Gemma 3",
        "Gemma3ForCausalLM",
        (
            *_common(
                activation="gelu_pytorch_tanh",
                activation_key="hidden_activation",
            ),
            Field("logits_soft_cap", "final_logit_softcapping", "cap", None),
        ),
        arguments={**_GEMMA, "qk_norm": "head"},
        only={
            **_NO_ATTENTION_BIAS,
            "attn_logit_softcapping": None,
            "use_bidirectional_attention": False,
        },
        windows=Windows(4096, _gemma3_types),
        rope=Rope(1_000_000.0, longest=131072),
        local_rope=Rope(theta_key="rope_local_base_freq", longest=131072),
        names=Names(norms={**AROUND, **QK_NORM}, offset=True),
        query_scale="self_attention/query_norm/scale",
        defaults=_GEMMA_DEFAULTS,
    ),
    # Phi-3, 3.5 and 4.
    Decoder(
        "phi3",
        "Phi-3",
        "Phi3ForCausalLM",
        (
            *_common(1e-5),
            Field("dropout", "resid_pdrop", "fraction", 0.0),
            Field("embedding_dropout", "embd_pdrop", "fraction", 0.0),
        ),
        windows=Windows(None),
        rope=Rope(
            partial=1.0,
            aliases={"su": "longrope", "yarn": "longrope"},
            outer_original=True,
            longest=4096,
        ),
        names=Names(
            dense={
                **SEPARATE,
                **dict.fromkeys(
                    (
                        "self_attention/query",
                        "self_attention/key",
                        "self_attention/value",
                    ),
                    "self_attn.qkv_proj",
                ),
                "feed_forward/inner": "mlp.gate_up_proj",
                "feed_forward/gate": "mlp.gate_up_proj",
            }
        ),
        defaults=_defaults(32000, 1, 32000),
    ),
    Decoder(
        "olmo2",
        "OLMo 2",
        "Olmo2ForCausalLM",
        _common(1e-5),
        arguments={
            "normalize_first": False,
            "normalize_output": True,
            "qk_norm": "all_heads",
        },
        only=_NO_ATTENTION_BIAS,
        names=Names(norms={**_AFTER, **QK_NORM}),
        defaults=_defaults(1, None, 50279),
    ),
    # GPT-NeoX-20B and Pythia.
    Decoder(
        "gpt_neox",
        "GPT-NeoX",
        "GPTNeoXForCausalLM",
        (
            *_common(1e-5, "gelu", epsilon_key="layer_norm_eps"),
            Field("dropout", "hidden_dropout", "fraction", 0.0),
            Field(
                "use_parallel_residual", "use_parallel_residual", "flag", True
            ),
        ),
        arguments={
            "gated": False,
            "normalization": "layer_norm",
            "use_bias": True,
        },
        only={"attention_bias": True},
        rope=Rope(
            theta_key="rotary_emb_base", partial=0.25, partial_key="rotary_pct"
        ),
        names=Names(
            prefix="gpt_neox.",
            embedding="embed_in",
            norm="final_layer_norm",
            head="embed_out",
            dense={
                **dict.fromkeys(
                    (
                        "self_attention/query",
                        "self_attention/key",
                        "self_attention/value",
                    ),
                    "attention.query_key_value",
                ),
                "self_attention/attention_output": "attention.dense",
                "feed_forward/inner": "mlp.dense_h_to_4h",
                "feed_forward/outer": "mlp.dense_4h_to_h",
            },
            by_head=True,
            buffers=(
                "attention.bias",
                "attention.masked_bias",
                "attention.rotary_emb.inv_freq",
            ),
        ),
        defaults=_defaults(start=0, end=2),
    ),
    Decoder(
        "mixtral",
        "Mixtral",
        "MixtralForCausalLM",
        (*_common(1e-5), *_experts(8, 2)),
        only={"router_jitter_noise": 0.0},
        windows=Windows(None),
        rope=Rope(1_000_000.0, longest=131072),
        names=Names(
            dense={
                **_ATTENTION,
                "feed_forward/router": "block_sparse_moe.gate",
            },
            experts={
                f"feed_forward/{ours}_experts": (
                    f"block_sparse_moe.experts.{{}}.{theirs}"
                )
                for ours, theirs in (
                    ("inner", "w1"),
                    ("gate", "w3"),
                    ("outer", "w2"),
                )
            },
        ),
        defaults=_defaults(start=1, end=2, num_key_value_heads=8),
    ),
    Decoder(
        "gpt_oss",
        "gpt-oss",
        "GptOssForCausalLM",
        (
            *_common(1e-5)[1:],
            *_experts(128, 4),
            Field("gate_limit", "swiglu_limit", "positive", 7.0),
        ),
        arguments={
            "activation": quick_gelu,
            "use_bias": True,
            "use_sinks": True,
        },
        only={
            "attention_bias": True,
            "hidden_act": "silu",
            "swiglu_alpha": 1.702,
        },
        windows=Windows(128, _gemma2_types),
        rope=Rope(
            150_000.0,
            longest=131072,
            scaling={
                "rope_type": "yarn",
                "factor": 32.0,
                "beta_fast": 32.0,
                "beta_slow": 1.0,
                "truncate": False,
                "original_max_position_embeddings": 4096,
            },
        ),
        names=Names(
            dense={**_ATTENTION, "feed_forward/router": "mlp.router"},
            experts={
                "feed_forward/inner_experts": "mlp.experts.gate_up_proj",
                "feed_forward/gate_experts": "mlp.experts.gate_up_proj",
                "feed_forward/outer_experts": "mlp.experts.down_proj",
            },
        ),
        defaults=_defaults(head_dim=64, num_key_value_heads=8),
    ),
)
DECODER_FAMILIES = tuple(as_family(decoder) for decoder in DECODERS)
