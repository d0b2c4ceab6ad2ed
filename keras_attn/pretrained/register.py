"""register_family: further decoder-only families."""

from collections.abc import Mapping
from typing import Any

from keras_attn import checks
from keras_attn.blocks.block_config import BlockConfig
from keras_attn.pretrained.config import Config
from keras_attn.pretrained.decoder_families import AROUND, DECODERS
from keras_attn.pretrained.decoder_only import (
    COMMON,
    PRE_NORM,
    QK_NORM,
    SEPARATE,
    Decoder,
    Field,
    as_family,
)
from keras_attn.pretrained.families import FAMILIES, registered

_ROWS = {decoder.model_type: decoder for decoder in DECODERS}
# Arguments of `GPT` that a config may determine, with the kind of the value.
_KINDS = {
    "activation": "activation",
    "activation_dropout": "fraction",
    "attention_dropout": "fraction",
    "attention_soft_cap": "cap",
    "dropout": "fraction",
    "embedding_dropout": "fraction",
    "epsilon": "positive",
    "logits_soft_cap": "cap",
    "use_bias": "flag",
    "use_parallel_residual": "flag",
    "use_qkv_bias": "flag",
}
# Families with an added position embedding have other configs, and those with
# experts other tensors.
_FIXED = tuple(
    name for name in COMMON if name not in ("position_embedding", "num_experts")
)
_NORMS = tuple({**PRE_NORM, **AROUND, **QK_NORM})
# Layers outside the blocks, which are attributes of `Names`.
_OUTER = "embedding", "norm", "head"
_TOKENS = "pad_token_id", "bos_token_id", "eos_token_id"
_SIZES = "head_dim", "num_key_value_heads"
_DEFAULTS = (
    *_SIZES,
    *_TOKENS,
    "max_position_embeddings",
    "rope_theta",
    "sliding_window",
    "tie_word_embeddings",
)


def register_family(
    model_type: str,
    architecture: str,
    like: str = "llama",
    arguments: Mapping[str, Any] | None = None,
    config_keys: Mapping[str, tuple[str, Any]] | None = None,
    tensor_names: Mapping[str, str | None] | None = None,
    defaults: Mapping[str, Any] | None = None,
) -> None:
    """Adds a decoder-only family to those that `load` and `save` know.

    The family is described by its differences from another one. Its models are
    a `keras_attn.models.GPT`. Of several families that fit a model, `save`
    takes a registered one last. Registering a family again replaces it.

    Args:
        model_type: str. The `model_type` of its `config.json`.
        architecture: str. The class in transformers, which `save` writes as
            `architectures`.
        like: str. The `model_type` of a decoder-only family of this package.
            Default `"llama"`.
        arguments: dict. Arguments of `GPT` that have another value in all
            models of the family, such as `{"gated": False}`.
        config_keys: dict from an argument of `GPT` that the config determines
            to a pair: the key, and its value if the key is missing.
        tensor_names: dict from a layer to the name of its tensors in files,
            without `.weight` and `.bias`. The layers are `"embedding"`,
            `"norm"` and `"head"`, and those of a block, such as
            `"feed_forward/inner"`, whose names begin after the number of the
            block. Those of experts have the number of the expert as `{}`, or
            name one tensor of all experts. None removes a norm that the family
            does not have.
        defaults: dict. Other values that hold if a config does not have their
            key: `head_dim`, `num_key_value_heads`, `tie_word_embeddings`,
            `max_position_embeddings`, `rope_theta`, `sliding_window`,
            `pad_token_id`, `bos_token_id` and `eos_token_id`.

    Raises:
        ValueError: `model_type` is a family of this package; `like` is not a
            decoder-only one; unknown arguments, layers or keys; or values that
            the key cannot have.

    Examples:
        >>> keras_attn.pretrained.register_family(
        ...     "my_llama", "MyLlamaForCausalLM",
        ...     config_keys={"epsilon": ("norm_eps", 1e-6)})
    """
    checks.string("model_type", model_type)
    if model_type in {family.model_type for family in FAMILIES}:
        raise ValueError(
            "`model_type` must not be a family of this package. "
            f"Received: model_type={model_type!r}"
        )
    checks.string("architecture", architecture)
    row = _ROWS[checks.choice("like", checks.string("like", like), _ROWS)]
    fields = {field.argument: field for field in row.fields}
    read = _mapping("config_keys", config_keys, _KINDS)
    fixed = _mapping("arguments", arguments, _FIXED)
    _check_arguments(fixed)
    both = sorted(read.keys() & fixed.keys())
    if both:
        raise ValueError(
            "`arguments` must not have an argument that is also in "
            f"`config_keys`. Received: {both[0]!r} in both"
        )
    for argument, pair in read.items():
        fields[argument] = _field(argument, pair)
    row = row._replace(
        model_type=model_type,
        title=model_type,
        architecture=architecture,
        equal_biases=row.equal_biases and "use_bias" not in {**read, **fixed},
        arguments={**row.arguments, **fixed},
        fields=tuple(
            field for field in fields.values() if field.argument not in fixed
        ),
    )
    row = _with_defaults(row, _mapping("defaults", defaults, _DEFAULTS))
    row = _with_names(row, tensor_names)
    registered[model_type] = as_family(row)


def _mapping(name, value, keys):
    """Returns a dict with known keys, or raises ValueError."""
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise ValueError(
            f"`{name}` must be a dict or None. "
            f"Received: {name}={checks.shown(value)}"
        )
    for key in value:
        if key not in keys:
            raise ValueError(
                f"`{name}` must only have the keys {', '.join(keys)}. "
                f"Received: {checks.shown(key)}"
            )
    return dict(value)


def _check_arguments(arguments):
    """Raises ValueError if `GPT` does not accept the values."""
    others = dict(arguments)
    try:
        for name in ("embedding_dropout", "logits_soft_cap"):
            value = others.pop(name, None)
            if value is not None:
                check = checks.positive if "cap" in name else checks.fraction
                check(name, value)
        checks.boolean("scale_embedding", others.pop("scale_embedding", False))
        BlockConfig(num_heads=1, intermediate_dim=1, **others)
    except ValueError as error:
        raise ValueError(
            f"`arguments` must have values that `GPT` accepts. {error}"
        ) from error


def _field(argument, pair):
    if (
        not isinstance(pair, (tuple, list))
        or len(pair) != 2
        or not isinstance(pair[0], str)
    ):
        raise ValueError(
            "`config_keys` must have a pair of a key (str) and its default for "
            f"each argument. Received: {argument!r}: {checks.shown(pair)}"
        )
    field = Field(argument, pair[0], _KINDS[argument], pair[1])
    _read("config_keys", lambda: field.read(Config({pair[0]: pair[1]})))
    return field


def _read(name, read):
    """Reads a default as if a config had it, so that it is checked."""
    try:
        read()
    except ValueError as error:
        raise ValueError(
            f"`{name}` must have defaults that configs may have. {error}"
        ) from error


def _with_defaults(row: Decoder, defaults: dict[str, Any]) -> Decoder:
    config = Config(defaults)
    for key, value in defaults.items():
        if key == "tie_word_embeddings":
            _read("defaults", lambda: config.flag("tie_word_embeddings", False))
        elif key == "rope_theta":
            _read("defaults", lambda: config.positive("rope_theta", 1.0))
        elif key in _TOKENS:
            # A registered family may have no such token.
            if value is not None:
                _read("defaults", lambda key=key: config.index(key))
        elif value is not None or key == "max_position_embeddings":
            _read("defaults", lambda key=key: config.size(key))
    rope = row.rope
    if "rope_theta" in defaults:
        rope = rope._replace(theta=float(defaults["rope_theta"]))
    if "max_position_embeddings" in defaults:
        rope = rope._replace(longest=defaults["max_position_embeddings"])
    windows = row.windows
    if "sliding_window" in defaults:
        if windows is None:
            raise ValueError(
                "`defaults` must not have 'sliding_window' if the family of "
                f"`like` has no windows. Received: {defaults!r}"
            )
        windows = windows._replace(default=defaults["sliding_window"])
    kept = {
        key: value
        for key, value in defaults.items()
        if key in (*_SIZES, *_TOKENS, "tie_word_embeddings")
    }
    return row._replace(
        rope=rope, windows=windows, defaults={**row.defaults, **kept}
    )


def _with_names(row, given):
    names = row.names
    dense, norms = dict(names.dense), dict(names.norms)
    experts = dict(names.experts)
    layers = {**dense, **experts} if experts else SEPARATE
    given = _mapping("tensor_names", given, (*_OUTER, *layers, *_NORMS))
    for layer, name in given.items():
        if name is None and layer in _NORMS:
            norms.pop(layer, None)
            continue
        if not isinstance(name, str):
            raise ValueError(
                "`tensor_names` must have a str for each layer, or None for a "
                f"norm. Received: {layer!r}: {checks.shown(name)}"
            )
        if layer in _OUTER:
            names = names._replace(**{layer: name})
        elif layer in experts:
            experts[layer] = name
        else:
            (norms if layer in _NORMS else dense)[layer] = name
    if not {**COMMON, **row.arguments}["gated"]:
        dense.pop("feed_forward/gate", None)
        experts.pop("feed_forward/gate_experts", None)
    elif not experts and "feed_forward/gate" not in dense:
        raise ValueError(
            "`tensor_names` must have 'feed_forward/gate' for gated "
            f"feed-forward networks. Received: {given!r}"
        )
    return row._replace(
        names=names._replace(dense=dense, norms=norms, experts=experts)
    )
