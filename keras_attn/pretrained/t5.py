"""T5, the text-to-text models of Google, and their multilingual successors.

The families `t5` and `mt5` of Hugging Face's transformers: T5 (Raffel et al.
2020, https://arxiv.org/abs/1910.10683), T5 1.1, Flan-T5 (Chung et al. 2022,
https://arxiv.org/abs/2210.11416), ByT5 and mT5 (Xue et al. 2021,
https://arxiv.org/abs/2010.11934). A pre-norm `Transformer` with RMS norms,
without biases and without position embeddings: its two stacks have a
`T5Position` each. T5 does not divide scores by sqrt(H), and the first T5
divides outputs by sqrt(D) before the tied matrix: our weights contain these
factors.
"""

import math
from typing import NamedTuple

from keras_attn.layers import T5Position
from keras_attn.layers.gelu_tanh import gelu_tanh
from keras_attn.models import Transformer
from keras_attn.pretrained.activations import ACTIVATIONS, activation_name
from keras_attn.pretrained.expectations import PLAIN_BLOCKS, expect
from keras_attn.pretrained.family import Family, Sizes
from keras_attn.pretrained.layouts import SAME, linear, scaled
from keras_attn.pretrained.special_ids import target_ids
from keras_attn.pretrained.tensor_names import TensorName

# Fixed for these families: their configs have no keys for these arguments.
_FIXED = {
    **{key: value for key, value in PLAIN_BLOCKS.items() if key != "key_dim"},
    "use_bias": False,
    "normalization": "rms_norm",
    "normalize_first": True,
    "position_embedding": None,
    "scale_embedding": False,
    "output_bias": False,
    "max_sequence_length": None,
}
_HEAD = "lm_head.weight"
# The activations of gated networks, by their names in `feed_forward_proj`.
_GATED = {
    f"gated-{name}": gelu_tanh if name == "gelu" else function
    for name, function in ACTIVATIONS.items()
}
_BIAS = "layer.0.SelfAttention.relative_attention_bias.weight"
# Names of the embedding in other files.
_COPIES = "encoder.embed_tokens.weight", "decoder.embed_tokens.weight"
_PROJECTIONS = {"query": "q", "key": "k", "value": "v", "attention_output": "o"}


class _Kind(NamedTuple):
    """What differs between T5 and mT5.

    Args:
        model_type: str. The value of `model_type` in `config.json`.
        title: str. Name of the family.
        architecture: str. The class in transformers.
        networks: str. The default of `feed_forward_proj`.
        divides: bool. Whether outputs may be divided by sqrt(D).
    """

    model_type: str
    title: str
    architecture: str
    networks: str
    divides: bool


def _family(kind):
    return Family(
        model_type=kind.model_type,
        serves=_serves,
        make=lambda config, names: _make(kind, config, names),
        describe=lambda model: _describe(kind, model),
        tensors=lambda model: _tensors(kind, model),
        sizes=_sizes,
        constants=_constants,
        adapt=lambda config, names: _adapt(kind, config, names),
    )


def _serves(model):
    return isinstance(model, Transformer) and model.position_embedding is None


def _make(kind, config, names):
    config.only("is_encoder_decoder", True)
    num_heads, layers = config.size("num_heads"), config.size("num_layers")
    width, head_dim = config.size("d_model"), config.size("d_kv", 64)
    dropout = config.fraction("dropout_rate", 0.1)
    activation = config.choice(
        "feed_forward_proj", ACTIVATIONS | _GATED, kind.networks
    )
    used = config.values.get("feed_forward_proj") or kind.networks
    encoder_position, decoder_position = (
        _position(config, num_heads, side) for side in ("encoder", "decoder")
    )
    vocabulary = config.size("vocab_size")
    return Transformer(
        vocabulary,
        num_layers=layers,
        num_decoder_layers=config.size("num_decoder_layers", layers),
        num_heads=num_heads,
        hidden_dim=width,
        key_dim=None if head_dim * num_heads == width else head_dim,
        intermediate_dim=config.size("d_ff"),
        dropout=dropout,
        attention_dropout=dropout,
        activation_dropout=dropout,
        activation=activation,
        gated=used in _GATED,
        epsilon=config.positive("layer_norm_epsilon", 1e-6),
        encoder_attention_position=encoder_position,
        decoder_attention_position=decoder_position,
        tie_word_embeddings=_divided(kind, config) or _HEAD not in names,
        **target_ids(config, vocabulary, vocabulary, pad=0, start=0, end=1),
        **_FIXED,
    )


def _divided(kind, config):
    """Returns whether outputs are divided by sqrt(D), before a tied matrix.

    In published configs, `tie_word_embeddings` decides. Where transformers 5
    writes it, it is always true, and `scale_decoder_outputs` decides.
    """
    if not kind.divides:
        return False
    tied = config.flag("tie_word_embeddings", True)
    return config.flag("scale_decoder_outputs", tied)


def _position(config, num_heads, side):
    buckets = config.size("relative_attention_num_buckets", 32)
    longest = config.size("relative_attention_max_distance", 128)
    try:
        return T5Position(
            num_heads,
            num_buckets=buckets,
            max_distance=longest,
            bidirectional=side == "encoder",
            name=f"{side}_attention_position",
        )
    except ValueError as error:
        raise ValueError(
            "`relative_attention_num_buckets` and "
            "`relative_attention_max_distance` in config.json must fit a "
            f"T5Position: {error}"
        ) from error


def _sizes(config):
    width, vocabulary = config.size("d_model"), config.size("vocab_size")
    num_heads, layers = config.size("num_heads"), config.size("num_layers")
    outputs = num_heads * config.size("d_kv", 64)
    shapes = [(("shared.weight", *_COPIES), (vocabulary, width))]
    buckets = config.size("relative_attention_num_buckets", 32)
    for side, inside in ("encoder", "layer.1"), ("decoder", "layer.2"):
        block = f"{side}.block.0"
        network = f"{block}.{inside}.DenseReluDense"
        shapes += [
            ((f"{block}.{_BIAS}",), (buckets, num_heads)),
            (
                (f"{block}.layer.0.SelfAttention.q.weight",),
                (outputs, width),
            ),
            (
                (f"{network}.wi.weight", f"{network}.wi_0.weight"),
                (config.size("d_ff"), width),
            ),
        ]
    return Sizes(
        shapes,
        {
            "num_layers": layers,
            "num_decoder_layers": config.size("num_decoder_layers", layers),
        },
    )


def _describe(kind, model):
    same = {
        "num_decoder_heads": model.num_heads,
        "decoder_intermediate_dim": model.intermediate_dim,
    }
    given = {k: v for k, v in same.items() if getattr(model, k) is not None}
    # T5 has one rate of dropout.
    rates = dict.fromkeys(
        ("attention_dropout", "activation_dropout"), model.dropout
    )
    title = kind.title
    vocabulary = {"target_vocabulary_size": None}
    expect(title, model, **_FIXED, **vocabulary, **rates, **given)
    position = _checked_positions(model, title)
    head_dim = model.key_dim or model.hidden_dim // model.num_heads
    return {
        "model_type": kind.model_type,
        "architectures": [kind.architecture],
        "is_encoder_decoder": True,
        "dtype": "float32",
        "vocab_size": model.source_vocabulary_size,
        "tie_word_embeddings": model.tie_word_embeddings,
        "d_model": model.hidden_dim,
        "d_kv": head_dim,
        "d_ff": model.intermediate_dim,
        "num_layers": model.num_layers,
        "num_decoder_layers": model.num_decoder_layers or model.num_layers,
        "num_heads": model.num_heads,
        "relative_attention_num_buckets": position.num_buckets,
        "relative_attention_max_distance": position.max_distance,
        "dropout_rate": model.dropout,
        "layer_norm_epsilon": model.epsilon,
        "feed_forward_proj": _network_name(model),
        "pad_token_id": model.pad_id,
        "decoder_start_token_id": model.start_id,
        "eos_token_id": model.end_id,
    }


def _checked_positions(model, title):
    """Returns the position of the encoder; raises ValueError if T5 has none."""
    positions = (
        model.encoder_attention_position,
        model.decoder_attention_position,
    )
    for side, position in zip(("encoder", "decoder"), positions, strict=True):
        both = side == "encoder"
        if (
            not isinstance(position, T5Position)
            or position.bidirectional is not both
        ):
            raise ValueError(
                f"A {title} model must have a T5Position with bidirectional="
                f"{both} as its {side}_attention_position. "
                f"Received: {position!r}"
            )
    sizes = [(one.num_buckets, one.max_distance) for one in positions]
    if sizes[0] != sizes[1]:
        raise ValueError(
            f"A {title} model must have the same num_buckets and max_distance "
            f"on both sides. Received: {sizes[0]} and {sizes[1]}"
        )
    return positions[0]


def _network_name(model):
    name = activation_name(model.activation)
    if not model.gated:
        return name
    # "gated-gelu" is the approximation with tanh.
    renamed = {"gelu_new": "gelu", "gelu": "gelu_python"}
    return f"gated-{renamed.get(name, name)}"


def _tensors(kind, model):
    tied = model.tie_word_embeddings
    copies = (*_COPIES, _HEAD) if tied else _COPIES
    table = "token_embedding/table/embeddings"
    names = [TensorName(table, "shared.weight", SAME, copies)]
    if not tied:
        names.append(TensorName("output/kernel", _HEAD, linear()))
    divided = tied and kind.divides
    last = scaled(SAME, model.hidden_dim**-0.5) if divided else SAME
    for side, position, layout in (
        ("encoder", model.encoder_attention_position, SAME),
        ("decoder", model.decoder_attention_position, last),
    ):
        theirs = f"{side}.block.0.{_BIAS}"
        names += [
            TensorName(position.table.path, theirs, SAME),
            *_norm(f"{side}_norm", f"{side}.final_layer_norm", layout),
        ]
    for number in range(model.num_layers):
        ours, theirs = f"encoder_block_{number}", f"encoder.block.{number}"
        names += _self_attention(model, ours, theirs)
        names += _network(model, ours, f"{theirs}.layer.1")
    for number in range(model.num_decoder_layers or model.num_layers):
        ours, theirs = f"decoder_block_{number}", f"decoder.block.{number}"
        names += _self_attention(model, ours, theirs)
        cross = f"{theirs}.layer.1"
        names += _attention(
            model, f"{ours}/cross_attention", f"{cross}.EncDecAttention"
        )
        names += _norm(
            f"{ours}/around_cross_attention/norm", f"{cross}.layer_norm"
        )
        names += _network(model, ours, f"{theirs}.layer.2")
    return names


def _adapt(kind, config, names):
    """Returns the names with the layout for a config without the division."""
    if _divided(kind, config):
        return names
    return [
        name._replace(layout=SAME)
        if name.ours == "decoder_norm/scale"
        else name
        for name in names
    ]


def _norm(ours, theirs, layout=SAME):
    return [TensorName(f"{ours}/scale", f"{theirs}.weight", layout)]


def _self_attention(model, ours, theirs):
    theirs = f"{theirs}.layer.0"
    return [
        *_attention(model, f"{ours}/self_attention", f"{theirs}.SelfAttention"),
        *_norm(f"{ours}/around_attention/norm", f"{theirs}.layer_norm"),
    ]


def _attention(model, ours, theirs):
    head_dim = model.key_dim or model.hidden_dim // model.num_heads
    layouts = {
        "query": scaled(linear(), math.sqrt(head_dim)),
        "attention_output": linear(2),
    }
    return [
        TensorName(
            f"{ours}/{one}/kernel",
            f"{theirs}.{name}.weight",
            layouts.get(one, linear()),
        )
        for one, name in _PROJECTIONS.items()
    ]


def _network(model, ours, theirs):
    inside = f"{theirs}.DenseReluDense"
    if model.gated:
        layers = {"inner": "wi_0", "gate": "wi_1", "outer": "wo"}
    else:
        layers = {"inner": "wi", "outer": "wo"}
    return [
        *(
            TensorName(
                f"{ours}/feed_forward/{one}/kernel",
                f"{inside}.{name}.weight",
                linear(),
            )
            for one, name in layers.items()
        ),
        *_norm(f"{ours}/around_feed_forward/norm", f"{theirs}.layer_norm"),
    ]


def _constants(model):
    # The first T5 files hold an unused table of the cross-attention.
    return {
        "decoder.block.0.layer.1.EncDecAttention."
        "relative_attention_bias.weight": None
    }


T5 = _family(
    _Kind("t5", "T5", "T5ForConditionalGeneration", "relu", divides=True)
)
MT5 = _family(
    _Kind(
        "mt5",
        "mT5",
        "MT5ForConditionalGeneration",
        "gated-gelu",
        divides=False,
    )
)
