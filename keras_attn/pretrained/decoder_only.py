"""Decoder-only families as configurations of `GPT`.

`decoder_families` has the table of families. The config keys and the names of
tensors are those of Hugging Face's transformers.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import keras

from keras_attn.models import GPT
from keras_attn.pretrained.activations import ACTIVATIONS, activation_name
from keras_attn.pretrained.expectations import expect
from keras_attn.pretrained.family import Family, Sizes
from keras_attn.pretrained.layer_types import (
    FULL,
    Windows,
    layers_with_rope,
    read_windows,
    write_windows,
)
from keras_attn.pretrained.layouts import (
    FLAT,
    SAME,
    linear,
    minus_one,
    scaled,
)
from keras_attn.pretrained.rope_parameters import (
    Rope,
    positions_of,
    read_rope,
    read_rope_by_type,
    write_rope,
    write_rope_by_type,
)
from keras_attn.pretrained.special_ids import special_ids, written_end_id
from keras_attn.pretrained.tensor_names import Part, TensorName

# Of all these families: a `GPT` without position embedding.
COMMON = MappingProxyType(
    {
        "activation_dropout": 0.0,
        "attention_soft_cap": None,
        "dropout": 0.0,
        "embedding_dropout": None,
        "gate_limit": None,
        "gated": True,
        "layer_scale": None,
        "logits_soft_cap": None,
        "normalization": "rms_norm",
        "normalize_first": True,
        "normalize_output": False,
        "num_experts": None,
        "position_embedding": None,
        "qk_norm": None,
        "scale_embedding": False,
        "skip_first_norm": False,
        "stochastic_depth": 0.0,
        "use_bias": False,
        "use_parallel_residual": False,
        "use_qkv_bias": None,
        "use_sinks": False,
    }
)
# Of most families.
SEPARATE = MappingProxyType(
    {
        "self_attention/query": "self_attn.q_proj",
        "self_attention/key": "self_attn.k_proj",
        "self_attention/value": "self_attn.v_proj",
        "self_attention/attention_output": "self_attn.o_proj",
        "feed_forward/inner": "mlp.gate_proj",
        "feed_forward/gate": "mlp.up_proj",
        "feed_forward/outer": "mlp.down_proj",
    }
)
_FIRST_NORM = "around_attention/norm"
PRE_NORM = MappingProxyType(
    {
        _FIRST_NORM: "input_layernorm",
        "around_feed_forward/norm": "post_attention_layernorm",
    }
)
QK_NORM = MappingProxyType(
    {
        "self_attention/query_norm": "self_attn.q_norm",
        "self_attention/key_norm": "self_attn.k_norm",
    }
)


class Names(NamedTuple):
    """Names of the tensors of a family.

    Args:
        prefix: str. Of all tensors but those of the head.
        embedding: str. Name of the token embedding.
        norm: str. That of the last norm.
        head: str. That of the output.
        dense: dict from our dense layers of a block to their names. Layers with
            the same name are parts of one tensor, in this order.
        norms: dict from our norms of a block to their names.
        by_head: bool. Whether such a tensor holds the parts head by head.
        offset: bool. Whether the scales of norms are stored minus 1.
        buffers: tuple of str. Tensors of a block that are no weights.
        experts: dict from our dense layers of experts to their names, which
            have the number of the expert as `{}`, or all experts in one tensor
            (E, inputs, outputs) and its biases with the suffix `_bias`. Layers
            with the same name have alternate outputs. Default: no experts.
        sinks: str. Name of the attention sinks of a block.
    """

    prefix: str = "model."
    embedding: str = "embed_tokens"
    norm: str = "norm"
    head: str = "lm_head"
    dense: Mapping[str, str] = SEPARATE
    norms: Mapping[str, str] = PRE_NORM
    by_head: bool = False
    offset: bool = False
    buffers: tuple[str, ...] = ("self_attn.rotary_emb.inv_freq",)
    experts: Mapping[str, str] = MappingProxyType({})
    sinks: str = "self_attn.sinks"


class Field(NamedTuple):
    """A value of a config that is an argument of `GPT`.

    Args:
        argument: str. Name of the argument.
        key: str. That of the value.
        kind: str. A method of `Config`, `"activation"`, or `"cap"`: a number
            or null.
        default: the value if the key is missing.
    """

    argument: str
    key: str
    kind: str
    default: Any

    def read(self, config: Any) -> Any:
        """Returns the argument."""
        if self.kind == "activation":
            return config.choice(self.key, ACTIVATIONS, self.default)
        if self.kind == "cap":
            return config.optional(self.key, config.positive, self.default)
        return getattr(config, self.kind)(self.key, self.default)

    def write(self, model: GPT) -> Any:
        """Returns the value."""
        value = getattr(model, self.argument)
        if self.argument == "embedding_dropout" and value is None:
            return model.dropout
        if self.kind != "activation":
            return value
        # Of several names of a function, the usual one of the family.
        usual = keras.activations.get(ACTIVATIONS[self.default])
        return self.default if value is usual else activation_name(value)


class Decoder(NamedTuple):
    """Description of a decoder-only family, a row of the table.

    Args:
        model_type: str. The value of `model_type` in its `config.json`.
        title: str. Name of the family.
        architecture: str. The class in transformers.
        arguments: dict. Arguments of `GPT` that differ from `COMMON` and are
            the same for all models.
        fields: tuple of `Field`: arguments that the config determines.
        only: dict of config keys with the only supported value.
        defaults: dict of config keys with their defaults:
            `num_key_value_heads`, `head_dim`, `tie_word_embeddings`,
            `pad_token_id`, `bos_token_id` and `eos_token_id`.
        rope: `Rope`.
        local_rope: `Rope` of the layers with a window, if theirs differs.
        windows: `Windows`, or None: no layer has one.
        some_without_rope: bool. Whether `no_rope_layers` lists layers without
            rotation.
        equal_biases: bool. Whether `attention_bias` must equal `mlp_bias`.
        query_scale: str. The weight of a block that takes a
            `query_pre_attn_scalar` other than the features per head. None: the
            config has no such key.
        names: `Names`.
    """

    model_type: str
    title: str
    architecture: str
    fields: tuple[Field, ...]
    arguments: Mapping[str, Any] = MappingProxyType({})
    only: Mapping[str, Any] = MappingProxyType({})
    defaults: Mapping[str, Any] = MappingProxyType({})
    rope: Rope = Rope()
    local_rope: Rope | None = None
    windows: Windows | None = None
    some_without_rope: bool = False
    equal_biases: bool = False
    query_scale: str | None = None
    names: Names = Names()

    @property
    def fixed(self) -> dict[str, Any]:
        """The arguments of `GPT` that no config determines."""
        read = {field.argument for field in self.fields}
        fixed = {**COMMON, **self.arguments}
        if self.windows is None:
            fixed["sliding_window"] = None
        if not self.grouped:
            fixed["num_key_value_heads"] = None
        return {k: value for k, value in fixed.items() if k not in read}

    @property
    def grouped(self) -> bool:
        """Whether the config has `num_key_value_heads` and `head_dim`."""
        return not self.names.by_head

    @property
    def has_experts(self) -> bool:
        """Whether the feed-forward networks are mixtures of experts."""
        return bool(self.names.experts)


def as_family(decoder: Decoder) -> Family:
    """Returns the `Family` of a row of the table."""
    return Family(
        model_type=decoder.model_type,
        serves=_serves,
        make=lambda config, names: _make(decoder, config),
        describe=lambda model: _describe(decoder, model),
        tensors=lambda model: _tensors(decoder, model),
        sizes=lambda config: _sizes(decoder, config),
        constants=lambda model: _constants(decoder, model),
        adapt=lambda config, names: _adapt(decoder, config, names),
    )


def _serves(model):
    return isinstance(model, GPT) and model.position_embedding is None


def _make(decoder, config):
    for key, supported in decoder.only.items():
        config.only(key, supported)
    if decoder.equal_biases:
        config.only("attention_bias", config.flag("mlp_bias", False))
    defaults = decoder.defaults
    layers, vocabulary = (
        config.size("num_hidden_layers"),
        config.size("vocab_size"),
    )
    num_heads, head_dim = _heads(decoder, config)
    width = config.size("hidden_size")
    arguments = {field.argument: field.read(config) for field in decoder.fields}
    if decoder.has_experts:
        arguments["router_aux_loss_coef"] = _router_loss(config)
        count = arguments["num_experts"]
        if arguments["num_experts_per_tok"] > count:
            config.refuse(
                "num_experts_per_tok",
                f"must be at most `num_local_experts`={count}",
            )
    types = [FULL] * layers
    if decoder.windows is not None:
        arguments["sliding_window"], types = read_windows(
            config, decoder.windows, layers
        )
    if decoder.grouped:
        arguments["num_key_value_heads"] = _key_value_heads(decoder, config)
    positions, longest = _positions(decoder, config, types, num_heads, head_dim)
    return GPT(
        vocabulary,
        num_layers=layers,
        num_heads=num_heads,
        hidden_dim=width,
        intermediate_dim=config.size("intermediate_size"),
        key_dim=None if head_dim * num_heads == width else head_dim,
        attention_position=positions,
        max_sequence_length=longest,
        tie_word_embeddings=config.flag(
            "tie_word_embeddings", defaults["tie_word_embeddings"]
        ),
        **special_ids(
            config,
            vocabulary,
            *(defaults[f"{name}_token_id"] for name in ("pad", "bos", "eos")),
        ),
        **decoder.fixed,
        **arguments,
    )


def _check_floats(config):
    """Raises ValueError for quantized weights, such as MXFP4 of gpt-oss."""
    if config.count("quantization_config"):
        method = config.values["quantization_config"].get("quant_method")
        config.refuse(
            "quantization_config",
            "must be null: convert the weights with transformers, MXFP4 with "
            "`Mxfp4Config(dequantize=True)`",
            {"quant_method": method},
        )


def _router_loss(config):
    """Returns the factor of the loss, which transformers adds on request."""
    factor = config.not_negative("router_aux_loss_coef", 0.001)
    return factor if config.flag("output_router_logits", False) else 0.0


def _heads(decoder, config):
    """Returns N and H."""
    num_heads, width = (
        config.size("num_attention_heads"),
        config.size("hidden_size"),
    )
    head_dim = decoder.defaults.get("head_dim") if decoder.grouped else None
    if decoder.grouped:
        head_dim = config.optional("head_dim", config.size, head_dim)
    if head_dim is None:
        num_heads = config.heads("num_attention_heads", "hidden_size")
        head_dim = width // num_heads
    return num_heads, head_dim


def _key_value_heads(decoder, config):
    """Returns K, or None if it is N."""
    num_heads = config.size("num_attention_heads")
    default = decoder.defaults.get("num_key_value_heads", num_heads)
    heads = config.optional("num_key_value_heads", config.size, default)
    if num_heads % (heads or num_heads):
        config.refuse(
            "num_key_value_heads",
            f"must divide `num_attention_heads`={num_heads}",
            heads,
        )
    return None if heads == num_heads else heads


def _positions(decoder, config, types, num_heads, head_dim):
    """Returns the attention position and the longest sequence."""
    sizes = num_heads, head_dim
    if decoder.local_rope is not None:
        return read_rope_by_type(
            config, decoder.rope, decoder.local_rope, types, *sizes
        )
    position, longest = read_rope(config, decoder.rope, *sizes)
    if decoder.some_without_rope:
        used = layers_with_rope(config, len(types))
        if not all(used):
            position = [position if one else None for one in used]
    return position, longest


def _sizes(decoder, config):
    _check_floats(config)
    names = decoder.names
    num_heads, head_dim = _heads(decoder, config)
    key_value_heads = num_heads
    if decoder.grouped:
        key_value_heads = _key_value_heads(decoder, config) or num_heads
    width = config.size("hidden_size")
    outputs = _outputs(
        num_heads,
        key_value_heads,
        head_dim,
        config.size("intermediate_size"),
        width,
        _experts(decoder, config),
    )
    shapes = [
        (
            (
                *_both(decoder, f"{names.embedding}.weight"),
                f"{names.head}.weight",
            ),
            (config.size("vocab_size"), width),
        )
    ]
    first = "router" if decoder.has_experts else "inner"
    for ours in ("self_attention/query", f"feed_forward/{first}"):
        theirs = names.dense[ours]
        rows = sum(outputs[one] for one in _fused(names, theirs))
        shapes.append(
            (_both(decoder, f"layers.0.{theirs}.weight"), (rows, width))
        )
    if decoder.has_experts:
        shapes.append(_shape_of_experts(decoder, config, width))
    return Sizes(
        shapes, {"num_hidden_layers": config.size("num_hidden_layers")}
    )


def _experts(decoder, config):
    """Returns the number of experts, or None."""
    for field in decoder.fields:
        if field.argument == "num_experts":
            return field.read(config)
    return None


def _shape_of_experts(decoder, config, width):
    """Returns the names and the shape of the first weight of experts."""
    names = decoder.names.experts
    name = names["feed_forward/inner_experts"]
    size = config.size("intermediate_size")
    if "{}" in name:
        weight = f"layers.0.{name.format(0)}.weight"
        return _both(decoder, weight), (size, width)
    columns = size * list(names.values()).count(name)
    shape = _experts(decoder, config), width, columns
    return _both(decoder, f"layers.0.{name}"), shape


def _outputs(
    num_heads, key_value_heads, head_dim, intermediate_dim, width, num_experts
):
    """Returns the number of outputs of each dense layer of a block."""
    return {
        "feed_forward/router": num_experts,
        "self_attention/query": num_heads * head_dim,
        "self_attention/key": key_value_heads * head_dim,
        "self_attention/value": key_value_heads * head_dim,
        "self_attention/attention_output": width,
        "feed_forward/inner": intermediate_dim,
        "feed_forward/gate": intermediate_dim,
        "feed_forward/outer": width,
    }


def _fused(names, theirs):
    """Returns our layers that are one tensor in a file."""
    return [ours for ours, name in names.dense.items() if name == theirs]


def _both(decoder, theirs):
    # A file without the head has no prefix.
    return decoder.names.prefix + theirs, theirs


def _describe(decoder, model):
    title = decoder.title
    fixed = decoder.fixed
    if not decoder.grouped and model.num_key_value_heads == model.num_heads:
        fixed = fixed | {"num_key_value_heads": model.num_heads}
    expect(title, model, **fixed)
    head_dim = model.key_dim or model.hidden_dim // model.num_heads
    if model.hidden_dim % model.num_heads or (
        not decoder.grouped and head_dim * model.num_heads != model.hidden_dim
    ):
        raise ValueError(
            f"A {title} model must have num_heads that divide hidden_dim"
            + ("" if decoder.grouped else " and the default key_dim")
            + f". Received: num_heads={model.num_heads}, "
            f"hidden_dim={model.hidden_dim}, key_dim={model.key_dim}"
        )
    written = {
        "model_type": decoder.model_type,
        "architectures": [decoder.architecture],
        "dtype": "float32",
        "vocab_size": model.vocabulary_size,
        "hidden_size": model.hidden_dim,
        "num_hidden_layers": model.num_layers,
        "num_attention_heads": model.num_heads,
        "intermediate_size": model.intermediate_dim,
        "tie_word_embeddings": model.tie_word_embeddings,
        "pad_token_id": model.pad_id,
        "bos_token_id": model.start_id,
        "eos_token_id": written_end_id(model),
        **decoder.only,
        **{field.key: field.write(model) for field in decoder.fields},
    }
    if decoder.has_experts and model.router_aux_loss_coef:
        written["router_aux_loss_coef"] = model.router_aux_loss_coef
        written["output_router_logits"] = True
    if decoder.equal_biases:
        written["attention_bias"] = model.use_bias
    if decoder.grouped:
        written["head_dim"] = head_dim
        written["num_key_value_heads"] = (
            model.num_key_value_heads or model.num_heads
        )
    if decoder.query_scale is not None:
        written["query_pre_attn_scalar"] = head_dim
    if decoder.windows is not None:
        written |= write_windows(title, model, decoder.windows)
    return written | _write_positions(decoder, model)


def _write_positions(decoder, model):
    title, positions = decoder.title, positions_of(model)
    if decoder.local_rope is not None:
        return write_rope_by_type(
            title, model, decoder.rope, decoder.local_rope
        )
    if not decoder.some_without_rope:
        return write_rope(title, model, positions, decoder.rope)
    rotated = tuple(one for one in positions if one is not None)
    return {
        **write_rope(title, model, rotated, decoder.rope),
        "no_rope_layers": [int(one is not None) for one in positions],
    }


def _tensors(decoder, model):
    names = decoder.names
    head = f"{names.head}.weight"
    tied = (head,) if model.tie_word_embeddings else ()
    found = [
        _name(
            decoder,
            "token_embedding/table/embeddings",
            f"{names.embedding}.weight",
            SAME,
            tied,
        ),
        *_norm(decoder, model, "norm", names.norm),
    ]
    if not model.tie_word_embeddings:
        found.append(TensorName("output/kernel", head, linear()))
    for number in range(model.num_layers):
        ours, theirs = f"block_{number}", f"layers.{number}"
        for layer, name in names.norms.items():
            if number == 0 and layer == _FIRST_NORM and model.skip_first_norm:
                continue
            found += _norm(
                decoder, model, f"{ours}/{layer}", f"{theirs}.{name}"
            )
        for layer in names.dense:
            found += _dense(decoder, model, ours, theirs, layer)
        for layer in names.experts:
            found += _expert_dense(decoder, model, ours, theirs, layer)
        if model.use_sinks:
            found.append(
                _name(
                    decoder,
                    f"{ours}/self_attention/sinks",
                    f"{theirs}.{names.sinks}",
                    FLAT,
                )
            )
    return found


def _expert_dense(decoder, model, ours, theirs, layer):
    """Returns the names of the dense layers of the experts."""
    names = decoder.names.experts
    name = f"{theirs}.{names[layer]}"
    if "{}" in name:
        return [
            _name(
                decoder,
                f"{ours}/{layer}/kernel",
                f"{name.format(row)}.weight",
                linear(),
            )._replace(row=row)
            for row in range(model.num_experts)
        ]
    alternate = [one for one in names if names[one] == names[layer]]
    found = []
    for what, suffix, axis in (("kernel", "", 2), ("bias", "_bias", 1)):
        part = None
        if len(alternate) > 1:
            sizes = (1,) * len(alternate)
            repeats = model.intermediate_dim
            part = Part(alternate.index(layer), sizes, axis, repeats)
        found.append(
            _name(
                decoder,
                f"{ours}/{layer}/{what}",
                f"{name}{suffix}",
                SAME,
                part=part,
            )
        )
    return found


def _norm(decoder, model, ours, theirs):
    if model.normalization != "rms_norm":
        names = [_name(decoder, f"{ours}/gamma", f"{theirs}.weight", SAME)]
        if model.normalization == "layer_norm":
            names.append(_name(decoder, f"{ours}/beta", f"{theirs}.bias", SAME))
        return names
    layout = minus_one() if decoder.names.offset else FLAT
    return [_name(decoder, f"{ours}/scale", f"{theirs}.weight", layout)]


def _dense(decoder, model, ours, theirs, layer):
    names = decoder.names
    head_dim = model.key_dim or model.hidden_dim // model.num_heads
    outputs = _outputs(
        model.num_heads,
        model.num_key_value_heads or model.num_heads,
        head_dim,
        model.intermediate_dim,
        model.hidden_dim,
        model.num_experts,
    )
    fused = _fused(names, names.dense[layer])
    part = None
    if len(fused) > 1:
        repeats = model.num_heads if names.by_head else 1
        sizes = tuple(outputs[one] // repeats for one in fused)
        part = Part(fused.index(layer), sizes, repeats=repeats)
    axes = 2 if layer == "self_attention/attention_output" else 1
    name = f"{theirs}.{names.dense[layer]}"
    found = [
        _name(
            decoder,
            f"{ours}/{layer}/kernel",
            f"{name}.weight",
            linear(axes),
            part=part,
        )
    ]
    is_qkv = layer.rpartition("/")[2] in ("query", "key", "value")
    biased = model.use_qkv_bias if is_qkv else None
    if model.use_bias if biased is None else biased:
        found.append(
            _name(
                decoder,
                f"{ours}/{layer}/bias",
                f"{name}.bias",
                FLAT,
                part=part,
            )
        )
    return found


def _name(decoder, ours, theirs, layout, copies=(), part=None):
    name, bare = _both(decoder, theirs)
    return TensorName(ours, name, layout, (bare, *copies), part)


def _adapt(decoder, config, names):
    """Returns names with the layouts that a config asks for.

    Scores are divided by the square root of `query_pre_attn_scalar`, in most
    models the features per head, as here. Otherwise the queries are multiplied
    by the ratio of the two.
    """
    if decoder.query_scale is None:
        return names
    _, head_dim = _heads(decoder, config)
    scalar = config.positive(
        "query_pre_attn_scalar", decoder.defaults["query_pre_attn_scalar"]
    )
    if scalar == head_dim:
        return names
    factor = (head_dim / scalar) ** 0.5
    return [
        name._replace(layout=scaled(name.layout, factor))
        if name.ours.endswith(decoder.query_scale)
        else name
        for name in names
    ]


def _constants(decoder, model):
    return {
        name: None
        for number in range(model.num_layers)
        for buffer in decoder.names.buffers
        for name in _both(decoder, f"layers.{number}.{buffer}")
    }
