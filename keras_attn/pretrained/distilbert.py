"""DistilBERT, with and without heads.

The family `distilbert` of Hugging Face's transformers (Sanh et al. 2019,
https://arxiv.org/abs/1910.01108): a `Bert` without segments and pooler.
"""

from keras_attn.models import Bert, Roberta
from keras_attn.pretrained.activations import ACTIVATIONS, activation_name
from keras_attn.pretrained.bert_encoder import (
    FIXED,
    describe_labels,
    position_ids,
    read_num_labels,
)
from keras_attn.pretrained.expectations import expect
from keras_attn.pretrained.family import Family, Sizes
from keras_attn.pretrained.heads import (
    add_head,
    classifier_tensors,
    encoder_of,
    head_of,
    heads_of,
    label_shapes,
    labels_of,
    masked_lm_tensors,
    read_head,
)
from keras_attn.pretrained.layouts import SAME
from keras_attn.pretrained.tensor_names import (
    TensorName,
    attention,
    dense,
    norm,
)

# Fixed for this family.
_FIXED = FIXED | {"epsilon": 1e-12, "num_segments": None, "pooler": False}
_PREFIX = "distilbert."
_TABLE = "embeddings.word_embeddings.weight"
_POSITIONS = "embeddings.position_embeddings.weight"
_PROJECTOR = "vocab_projector.weight"
_HEADS = heads_of("DistilBert")
_POOLER = {"sequence_classification": "relu", "multiple_choice": "relu"}
_HEAD_PREFIXES = "classifier.", "pre_classifier.", "qa_outputs.", "vocab_"
_PARTS = "q_lin", "k_lin", "v_lin", "out_lin"
# The dropout of a head: key of the config and default.
_DROPOUTS = {
    "sequence_classification": ("seq_classif_dropout", 0.2),
    "multiple_choice": ("seq_classif_dropout", 0.2),
    "token_classification": ("dropout", 0.1),
    "question_answering": ("qa_dropout", 0.1),
}


def _make(config, names):
    config.only("tie_word_embeddings", True)
    config.only("tie_weights_", True)
    vocabulary = config.size("vocab_size")
    encoder = Bert(
        vocabulary,
        num_layers=config.size("n_layers"),
        num_heads=config.heads("n_heads", "dim"),
        hidden_dim=config.size("dim"),
        intermediate_dim=config.size("hidden_dim"),
        dropout=config.fraction("dropout", 0.1),
        attention_dropout=config.fraction("attention_dropout", 0.1),
        activation=config.choice("activation", ACTIVATIONS, "gelu"),
        max_sequence_length=config.size("max_position_embeddings", 512),
        num_segments=None,
        pooler=False,
        pad_id=config.token_id("pad_token_id", 0, vocabulary),
    )
    head = read_head(config, _HEADS)
    dropout = config.fraction(*_DROPOUTS.get(head, ("dropout", 0.1)))
    return add_head(head, encoder, read_num_labels(config), dropout, "relu")


def _sizes(config):
    width = config.size("dim")
    shapes = [
        ((*_both(_TABLE), _PROJECTOR), (config.size("vocab_size"), width)),
        (
            _both(_POSITIONS),
            (config.size("max_position_embeddings", 512), width),
        ),
        (
            _both("transformer.layer.0.ffn.lin1.weight"),
            (config.size("hidden_dim"), width),
        ),
    ]
    shapes += label_shapes(
        read_head(config, _HEADS), read_num_labels(config), width
    )
    return Sizes(shapes, {"n_layers": config.size("n_layers")})


def _both(name):
    return name, _PREFIX + name


def _describe(model):
    encoder = encoder_of(model)
    head = head_of("DistilBERT", model, _HEADS, _POOLER)
    expect("DistilBERT", encoder, **_FIXED)
    if head == "token_classification":
        # The config has one value for both.
        expect("DistilBERT", model, dropout=encoder.dropout)
    values = {
        "model_type": "distilbert",
        "architectures": [_HEADS[head]],
        "dtype": "float32",
        "vocab_size": encoder.vocabulary_size,
        "n_layers": encoder.num_layers,
        "n_heads": encoder.num_heads,
        "dim": encoder.hidden_dim,
        "hidden_dim": encoder.intermediate_dim,
        "activation": activation_name(encoder.activation),
        "dropout": encoder.dropout,
        "attention_dropout": encoder.attention_dropout,
        "max_position_embeddings": encoder.max_sequence_length,
        "pad_token_id": encoder.pad_id,
        **describe_labels(labels_of(model)),
    }
    if head in _DROPOUTS:
        inner = getattr(model, "classifier", model)
        values[_DROPOUTS[head][0]] = inner.dropout
    return values


def _tensors(model):
    encoder = encoder_of(model)
    head = head_of("DistilBERT", model, _HEADS, _POOLER)
    names = [
        TensorName("token_embedding/table/embeddings", _TABLE, SAME),
        TensorName("positions/table/embeddings", _POSITIONS, SAME),
        *norm("embedding_norm", "embeddings.LayerNorm"),
    ]
    for number in range(encoder.num_layers):
        names += _layer(f"block_{number}", f"transformer.layer.{number}")
    used, other = ("", _PREFIX) if head == "encoder" else (_PREFIX, "")
    names = [
        name._replace(theirs=used + name.theirs, copies=(other + name.theirs,))
        for name in names
    ]
    if head == "masked_lm":
        table = names[0]
        names[0] = table._replace(copies=(*table.copies, _PROJECTOR))
        return names + masked_lm_tensors(
            model, "vocab_transform", "vocab_layer_norm", "vocab_projector.bias"
        )
    return names + classifier_tensors(head, "pre_classifier")


def _layer(ours, theirs):
    return [
        *attention(f"{ours}/self_attention", f"{theirs}.attention", *_PARTS),
        *norm(f"{ours}/around_attention/norm", f"{theirs}.sa_layer_norm"),
        *dense(f"{ours}/feed_forward/inner", f"{theirs}.ffn.lin1"),
        *dense(f"{ours}/feed_forward/outer", f"{theirs}.ffn.lin2"),
        *norm(
            f"{ours}/around_feed_forward/norm", f"{theirs}.output_layer_norm"
        ),
    ]


def _serves(model):
    encoder = encoder_of(model)
    return not (
        encoder is None
        or isinstance(encoder, Roberta)
        or encoder.num_segments is not None
        # A ModernBERT.
        or encoder.position_embedding is None
    )


DISTILBERT = Family(
    model_type="distilbert",
    serves=_serves,
    make=_make,
    describe=_describe,
    tensors=_tensors,
    sizes=_sizes,
    constants=lambda model: position_ids(_PREFIX),
    signature=(_PREFIX + _TABLE,),
    heads=_HEADS,
    head_prefixes=_HEAD_PREFIXES,
)
