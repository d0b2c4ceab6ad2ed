"""ModernBERT, with and without heads.

The family `modernbert` of Hugging Face's transformers (Warner et al. 2024,
https://arxiv.org/abs/2412.13663): a `Bert` with rotary positions, windows in
most layers, gated feed-forward networks and pre-norm blocks.
"""

from typing import TYPE_CHECKING, Any

import keras

from keras_attn.models import Bert, Roberta
from keras_attn.pretrained.activations import ACTIVATIONS, activation_name
from keras_attn.pretrained.bert_encoder import (
    FIXED,
    describe_labels,
    read_num_labels,
)
from keras_attn.pretrained.config import Config
from keras_attn.pretrained.expectations import expect
from keras_attn.pretrained.family import Family, Sizes
from keras_attn.pretrained.heads import (
    add_head,
    encoder_of,
    head_dropout,
    head_of,
    heads_of,
    label_shapes,
    labels_of,
    read_head,
)
from keras_attn.pretrained.layer_types import (
    FULL,
    SLIDING,
    Windows,
    read_windows,
    write_windows,
)
from keras_attn.pretrained.layouts import FLAT, SAME
from keras_attn.pretrained.rope_parameters import (
    Rope,
    read_rope_by_type,
    write_rope_by_type,
)
from keras_attn.pretrained.tensor_names import Part, TensorName, dense, norm

if TYPE_CHECKING:
    from keras_attn.models.encoder import Encoder

_TITLE = "ModernBERT"
_BIAS_FREE = "bias_free_layer_norm"
# Fixed for this family. `attention_dropout` in the config is also the dropout
# of the attention's output, but not of the feed-forward network's.
_FIXED = {
    name: value
    for name, value in FIXED.items()
    if name
    not in (
        "activation_dropout",
        "attention_position",
        "normalization",
        "sliding_window",
        "use_bias",
    )
} | {
    "attention_dropout": 0.0,
    "dropout": 0.0,
    "gated": True,
    "normalize_first": True,
    "num_segments": None,
    "pooler": False,
    "position_embedding": None,
    "skip_first_norm": True,
}
# Other values are not supported.
_ONLY = {
    "attention_dropout": 0.0,
    "embedding_dropout": 0.0,
    "head_dim": None,
    "rope_scaling": None,
    "tie_word_embeddings": True,
}
_PAD = 50283  # default
_EPSILON = 1e-5
_LOCAL = 128  # default of `local_attention`
# Defaults of ids that no model here has. transformers warns of ids outside the
# vocabulary.
_OTHER_IDS = {
    "bos_token_id": 50281,
    "cls_token_id": 50281,
    "eos_token_id": 50282,
    "sep_token_id": 50282,
}
_EVERY = "global_attn_every_n_layers"
_LONGEST = 8192
_ROPE = Rope(160_000.0, theta_key="global_rope_theta", longest=_LONGEST)
_LOCAL_ROPE = Rope(10_000.0, theta_key="local_rope_theta", longest=_LONGEST)
_PREFIX = "model."
_TABLE = "embeddings.tok_embeddings.weight"
_FIRST_QKV = "layers.0.attn.Wqkv.weight"
_DECODER = "decoder.weight"
_HEADS = heads_of("ModernBert")
_POOLED = "sequence_classification", "multiple_choice"
_POOLER = dict.fromkeys(_POOLED, "tanh")  # the classifiers' default
_HEAD_PREFIXES = "classifier.", "decoder.", "head."


def _make(config, names):
    for key, supported in _ONLY.items():
        config.only(key, supported)
    head = read_head(config, _HEADS)
    use_bias = config.flag("mlp_bias", False)
    _same_flag(config, "attention_bias", use_bias)
    activation = config.choice("hidden_activation", ACTIVATIONS, "gelu")
    if head != "encoder":
        _check_head(config, head, use_bias, activation)
    vocabulary = config.size("vocab_size")
    layers = config.size("num_hidden_layers")
    width = config.size("hidden_size")
    num_heads = config.heads("num_attention_heads", "hidden_size")
    sliding_window, types = _read_windows(config, layers)
    positions, longest = _read_positions(
        config, types, num_heads, width // num_heads
    )
    norm_bias = config.flag("norm_bias", False)
    encoder = Bert(
        vocabulary,
        num_layers=layers,
        num_heads=num_heads,
        hidden_dim=width,
        intermediate_dim=config.size("intermediate_size"),
        dropout=0.0,
        attention_dropout=0.0,
        activation_dropout=config.fraction("mlp_dropout", 0.0),
        activation=activation,
        gated=True,
        normalize_first=True,
        skip_first_norm=True,
        normalization="layer_norm" if norm_bias else _BIAS_FREE,
        epsilon=config.positive("norm_eps", _EPSILON),
        use_bias=use_bias,
        sliding_window=sliding_window,
        position_embedding=None,
        attention_position=positions,
        max_sequence_length=longest,
        num_segments=None,
        pooler=False,
        pad_id=config.token_id("pad_token_id", _PAD, vocabulary),
    )
    return add_head(
        head,
        encoder,
        read_num_labels(config),
        config.fraction("classifier_dropout", 0.0),
        transform=True,
    )


def _same_flag(config, key, use_bias):
    if config.flag(key, False) != use_bias:
        config.refuse(key, "must equal `mlp_bias`", not use_bias)


def _check_head(config, head, use_bias, activation):
    """Raises ValueError if a head differs from its encoder."""
    _same_flag(config, "classifier_bias", use_bias)
    key = "classifier_activation"
    own = config.choice(key, ACTIVATIONS, "gelu")
    own, activation = map(keras.activations.get, (own, activation))
    if own is not activation:
        config.refuse(key, "must equal `hidden_activation`")
    if head == "masked_lm":
        config.only("decoder_bias", True)
    if head in _POOLED:
        config.only("classifier_pooling", "cls")


def _read_windows(config, layers):
    """Returns the windows, and the type of each layer.

    A token sees as many neighbors on each side as half of `local_attention`.
    """
    window = config.size("local_attention", _LOCAL) // 2 + 1
    values = config.values | {"sliding_window": window}
    return read_windows(
        Config(values, file=config.file), Windows(None, _types), layers
    )


def _types(config, layers, window):
    return _periodic(layers, config.size(_EVERY, 3))


def _periodic(layers, every):
    return [SLIDING if i % every else FULL for i in range(layers)]


def _read_positions(config, types, num_heads, head_dim):
    key = _LOCAL_ROPE.theta_key
    if key in config.values and not config.values.get("rope_parameters"):
        # Null was once the wavelength of the other layers.
        config.positive(key, None)
    return read_rope_by_type(
        config, _ROPE, _LOCAL_ROPE, types, num_heads, head_dim
    )


def _sizes(config):
    width = config.size("hidden_size")
    inner = config.size("intermediate_size")
    shapes = [
        ((*_both(_TABLE), _DECODER), (config.size("vocab_size"), width)),
        (_both(_FIRST_QKV), (3 * width, width)),
        (_both("layers.0.mlp.Wo.weight"), (width, inner)),
    ]
    shapes += label_shapes(
        read_head(config, _HEADS), read_num_labels(config), width
    )
    return Sizes(
        shapes, {"num_hidden_layers": config.size("num_hidden_layers")}
    )


def _both(name):
    return name, _PREFIX + name


def _describe(model):
    encoder = encoder_of(model)
    head = head_of(_TITLE, model, _HEADS, _POOLER, transform=True)
    expect(_TITLE, encoder, **_FIXED)
    if encoder.normalization == "rms_norm":
        expect(_TITLE, encoder, normalization=_BIAS_FREE)
    activation = activation_name(encoder.activation)
    dropout = head_dropout(model)
    return {
        "model_type": "modernbert",
        "architectures": [_HEADS[head]],
        "dtype": "float32",
        "vocab_size": encoder.vocabulary_size,
        "hidden_size": encoder.hidden_dim,
        "num_hidden_layers": encoder.num_layers,
        "num_attention_heads": encoder.num_heads,
        "intermediate_size": encoder.intermediate_dim,
        "hidden_activation": activation,
        "classifier_activation": activation,
        "attention_bias": encoder.use_bias,
        "mlp_bias": encoder.use_bias,
        "classifier_bias": encoder.use_bias,
        "classifier_pooling": "cls",
        "decoder_bias": True,
        "norm_bias": encoder.normalization == "layer_norm",
        "norm_eps": encoder.epsilon,
        "mlp_dropout": encoder.activation_dropout,
        "attention_dropout": 0.0,
        "embedding_dropout": 0.0,
        "pad_token_id": encoder.pad_id,
        **{
            key: None
            for key, default in _OTHER_IDS.items()
            if default >= encoder.vocabulary_size
        },
        **({} if dropout is None else {"classifier_dropout": dropout}),
        **_write_windows(encoder),
        **_write_positions(encoder),
        **describe_labels(labels_of(model)),
    }


def _write_windows(encoder: "Encoder") -> dict[str, Any]:
    written = write_windows(_TITLE, encoder, Windows(None, _types))
    window, types = written["sliding_window"], written["layer_types"]
    # Half of 1 is 0: a token sees itself only.
    local = _LOCAL if window is None else max(1, 2 * (window - 1))
    found = {"layer_types": types, "local_attention": local}
    # For versions of transformers without `layer_types`.
    for every in range(1, len(types) + 1):
        if _periodic(len(types), every) == types:
            return {**found, _EVERY: every}
    return found


def _write_positions(encoder):
    written = write_rope_by_type(_TITLE, encoder, _ROPE, _LOCAL_ROPE)
    # Scalings are in `rope_parameters`; this key would apply to all layers.
    del written["rope_scaling"]
    return written


def _tensors(model):
    encoder = encoder_of(model)
    head = head_of(_TITLE, model, _HEADS, _POOLER, transform=True)
    names = [
        TensorName("token_embedding/table/embeddings", _TABLE, SAME),
        *_norm(encoder, "embedding_norm", "embeddings.norm"),
        *_norm(encoder, "norm", "final_norm"),
    ]
    for number in range(encoder.num_layers):
        names += _layer(encoder, number)
    used, other = ("", _PREFIX) if head == "encoder" else (_PREFIX, "")
    names = [
        name._replace(theirs=used + name.theirs, copies=(other + name.theirs,))
        for name in names
    ]
    if head == "encoder":
        return names
    names += [
        *dense("transform", "head.dense", use_bias=encoder.use_bias),
        *_norm(encoder, "transform_norm", "head.norm"),
    ]
    if head == "masked_lm":
        table = names[0]
        names[0] = table._replace(copies=(*table.copies, _DECODER))
        return [
            *names,
            TensorName(model.token_bias.path, "decoder.bias", FLAT),
        ]
    output = "token" if head == "question_answering" else "output"
    return names + dense(output, "classifier")


def _norm(encoder, ours, theirs):
    return norm(ours, theirs, encoder.normalization == "layer_norm")


def _layer(encoder, number):
    ours, theirs = f"block_{number}", f"layers.{number}"
    width, inner = encoder.hidden_dim, encoder.intermediate_dim
    use_bias = encoder.use_bias
    names = [
        *_fused(
            [f"{ours}/self_attention/{x}" for x in ("query", "key", "value")],
            f"{theirs}.attn.Wqkv",
            width,
            use_bias,
        ),
        *dense(
            f"{ours}/self_attention/attention_output",
            f"{theirs}.attn.Wo",
            2,
            use_bias,
        ),
        *_fused(
            [f"{ours}/feed_forward/{x}" for x in ("inner", "gate")],
            f"{theirs}.mlp.Wi",
            inner,
            use_bias,
        ),
        *dense(
            f"{ours}/feed_forward/outer", f"{theirs}.mlp.Wo", use_bias=use_bias
        ),
        *_norm(
            encoder, f"{ours}/around_feed_forward/norm", f"{theirs}.mlp_norm"
        ),
    ]
    if number:
        names += _norm(
            encoder, f"{ours}/around_attention/norm", f"{theirs}.attn_norm"
        )
    return names


def _fused(ours, theirs, size, use_bias):
    """Returns the names of dense layers that are one in a file."""
    sizes = (size,) * len(ours)
    found = []
    for index, layer in enumerate(ours):
        part = Part(index, sizes)
        found += [
            name._replace(part=part)
            for name in dense(layer, theirs, use_bias=use_bias)
        ]
    return found


def _serves(model):
    encoder = encoder_of(model)
    return not (
        encoder is None
        or isinstance(encoder, Roberta)
        or encoder.num_segments is not None
        or encoder.position_embedding is not None
    )


MODERNBERT = Family(
    model_type="modernbert",
    serves=_serves,
    make=_make,
    describe=_describe,
    tensors=_tensors,
    sizes=_sizes,
    constants=lambda model: {},
    signature=_both(_FIRST_QKV),
    heads=_HEADS,
    head_prefixes=_HEAD_PREFIXES,
)
