"""BERT, with and without heads.

The family `bert` of Hugging Face's transformers (Devlin et al. 2019,
https://arxiv.org/abs/1810.04805).
"""

from keras_attn.models import Bert
from keras_attn.pretrained.activations import ACTIVATIONS, activation_name
from keras_attn.pretrained.bert_heads import (
    ARCHITECTURES,
    CLASSIFIERS,
    DECODER,
    HEAD_PREFIXES,
    HEADS,
    architecture_of,
    encoder_of,
    has_pooler,
    head_dropout,
    head_tensors,
    labels_of,
    make_head,
)
from keras_attn.pretrained.expectations import PLAIN_BLOCKS, expect
from keras_attn.pretrained.family import Family, Sizes
from keras_attn.pretrained.layouts import SAME
from keras_attn.pretrained.tensor_names import (
    TensorName,
    attention,
    dense,
)

# Fixed for this family: its config has no keys for these arguments.
_FIXED = {
    **PLAIN_BLOCKS,
    "activation_dropout": 0.0,
    "gated": False,
    "normalize_first": False,
    "position_embedding": "learned",
    "attention_position": None,
    "scale_embedding": False,
    "normalize_embedding": True,
    "character_vocabulary_size": None,
}
# Other values are not supported.
_ONLY = {
    "add_cross_attention": False,
    "is_decoder": False,
    "position_embedding_type": "absolute",
    "tie_word_embeddings": True,
}
_PREFIX = "bert."
_LABELS = 2  # default if a config does not give the number


def _make(config, names):
    for key, supported in _ONLY.items():
        config.only(key, supported)
    architecture = _architecture(config)
    vocabulary = config.size("vocab_size")
    dropout = config.fraction("hidden_dropout_prob", 0.1)
    encoder = Bert(
        vocabulary,
        num_layers=config.size("num_hidden_layers"),
        num_heads=config.heads("num_attention_heads", "hidden_size"),
        hidden_dim=config.size("hidden_size"),
        intermediate_dim=config.size("intermediate_size"),
        dropout=dropout,
        attention_dropout=config.fraction("attention_probs_dropout_prob", 0.1),
        activation=config.choice("hidden_act", ACTIVATIONS, "gelu"),
        epsilon=config.positive("layer_norm_eps", 1e-12),
        max_sequence_length=config.size("max_position_embeddings", 512),
        num_segments=config.size("type_vocab_size", 2),
        pooler=has_pooler(architecture, names),
        pad_id=config.token_id("pad_token_id", 0, vocabulary),
    )
    return make_head(
        architecture,
        encoder,
        _num_labels(config),
        config.fraction("classifier_dropout", dropout),
    )


def _architecture(config):
    architecture = config.strings("architectures", ["BertModel"])[0]
    if architecture not in ARCHITECTURES:
        raise ValueError(
            "`architectures` in config.json must begin with one of "
            f"{', '.join(ARCHITECTURES)}. Received: {architecture!r}"
        )
    return architecture


def _num_labels(config):
    return config.count("id2label") or config.size("num_labels", _LABELS)


def _sizes(config):
    width = config.size("hidden_size")
    table = "embeddings.word_embeddings.weight"
    shapes = [
        ((*_both(table), DECODER), (config.size("vocab_size"), width)),
        (
            _both("embeddings.position_embeddings.weight"),
            (config.size("max_position_embeddings", 512), width),
        ),
        (
            _both("embeddings.token_type_embeddings.weight"),
            (config.size("type_vocab_size", 2), width),
        ),
        (
            _both("encoder.layer.0.intermediate.dense.weight"),
            (config.size("intermediate_size"), width),
        ),
    ]
    if _architecture(config) in CLASSIFIERS:
        shapes.append((("classifier.weight",), (_num_labels(config), width)))
    return Sizes(
        shapes, {"num_hidden_layers": config.size("num_hidden_layers")}
    )


def _both(name):
    return name, _PREFIX + name


def _describe(model):
    encoder = encoder_of(model)
    expect("BERT", encoder, **_FIXED)
    values = {
        "model_type": "bert",
        "architectures": [architecture_of(model)],
        "dtype": "float32",
        "vocab_size": encoder.vocabulary_size,
        "num_hidden_layers": encoder.num_layers,
        "num_attention_heads": encoder.num_heads,
        "hidden_size": encoder.hidden_dim,
        "intermediate_size": encoder.intermediate_dim,
        "hidden_act": activation_name(encoder.activation),
        "hidden_dropout_prob": encoder.dropout,
        "attention_probs_dropout_prob": encoder.attention_dropout,
        "classifier_dropout": head_dropout(model),
        "layer_norm_eps": encoder.epsilon,
        "max_position_embeddings": encoder.max_sequence_length,
        "type_vocab_size": encoder.num_segments,
        "pad_token_id": encoder.pad_id,
    }
    labels = labels_of(model)
    if labels is not None:
        names = [f"LABEL_{number}" for number in range(labels)]
        values["id2label"] = {str(i): name for i, name in enumerate(names)}
        values["label2id"] = {name: i for i, name in enumerate(names)}
    return values


def _tensors(model):
    encoder = encoder_of(model)
    table = "embeddings.word_embeddings.weight"
    head, copies = head_tensors(model, _bare_norm)
    # Bare models are saved without the prefix, as in transformers.
    prefix = "" if encoder is model else _PREFIX
    names = [
        TensorName(
            "token_embedding/table/embeddings", table, SAME, tuple(copies)
        ),
        TensorName(
            "segment_embedding/table/embeddings",
            "embeddings.token_type_embeddings.weight",
            SAME,
        ),
        TensorName(
            "positions/table/embeddings",
            "embeddings.position_embeddings.weight",
            SAME,
        ),
        *_bare_norm("embedding_norm", "embeddings.LayerNorm"),
    ]
    for number in range(encoder.num_layers):
        names += _layer(f"block_{number}", f"encoder.layer.{number}")
    if encoder.pooler:
        names += dense("pooler", "pooler.dense")
    return [_prefixed(name, prefix) for name in names] + head


def _layer(ours, theirs):
    return [
        *_attention(f"{ours}/self_attention", f"{theirs}.attention"),
        *_bare_norm(
            f"{ours}/around_attention/norm",
            f"{theirs}.attention.output.LayerNorm",
        ),
        *dense(f"{ours}/feed_forward/inner", f"{theirs}.intermediate.dense"),
        *dense(f"{ours}/feed_forward/outer", f"{theirs}.output.dense"),
        *_bare_norm(
            f"{ours}/around_feed_forward/norm", f"{theirs}.output.LayerNorm"
        ),
    ]


def _attention(ours, theirs):
    parts = [f"self.{part}" for part in ("query", "key", "value")]
    return attention(ours, theirs, *parts, "output.dense")


def _bare_norm(ours, theirs):
    # Files converted from TensorFlow checkpoints use its names.
    return [
        TensorName(
            f"{ours}/gamma", f"{theirs}.weight", SAME, (f"{theirs}.gamma",)
        ),
        TensorName(f"{ours}/beta", f"{theirs}.bias", SAME, (f"{theirs}.beta",)),
    ]


def _prefixed(name, prefix):
    """Adds the prefix to an encoder name, and the other form as a copy."""
    other = "" if prefix else _PREFIX
    heads = tuple(copy for copy in name.copies if copy.startswith("cls."))
    olds = tuple(copy for copy in name.copies if not copy.startswith("cls."))
    return name._replace(
        theirs=prefix + name.theirs,
        copies=(
            *(prefix + copy for copy in olds),
            *(other + copy for copy in (name.theirs, *olds)),
            *heads,
        ),
    )


def _constants(model):
    return dict.fromkeys(_both("embeddings.position_ids"))


BERT = Family(
    model_type="bert",
    serves=lambda model: encoder_of(model) is not None,
    make=_make,
    describe=_describe,
    tensors=_tensors,
    sizes=_sizes,
    constants=_constants,
    # Bare names are also those of RoBERTa.
    signature=("bert.embeddings.word_embeddings.weight",),
    heads=HEADS,
    head_prefixes=HEAD_PREFIXES,
)
