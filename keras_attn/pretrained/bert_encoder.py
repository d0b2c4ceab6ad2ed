"""The encoder of BERT and its successors: config keys and names of weights."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from keras_attn.pretrained.activations import ACTIVATIONS, activation_name
from keras_attn.pretrained.expectations import PLAIN_BLOCKS, expect
from keras_attn.pretrained.layouts import SAME
from keras_attn.pretrained.tensor_names import TensorName, attention, dense
from keras_attn.typing import Tensor

if TYPE_CHECKING:
    from keras_attn.models.bert import Bert
    from keras_attn.pretrained.config import Config
    from keras_attn.pretrained.layouts import Layout


# Fixed for these families: their configs have no keys for these arguments.
FIXED = {
    **PLAIN_BLOCKS,
    "activation_dropout": 0.0,
    "gated": False,
    "normalize_first": False,
    "position_embedding": "learned",
    "attention_position": None,
    "scale_embedding": False,
    "normalize_embedding": True,
    "character_vocabulary_size": None,
    "embedding_dim": None,
    "share_blocks": False,
}
# Other values are not supported.
_ONLY = {
    "add_cross_attention": False,
    "is_decoder": False,
    "position_embedding_type": "absolute",
    "tie_word_embeddings": True,
}
_LABELS = 2  # default if a config does not give the number
# The embedding table, to which the output of masked language modeling is tied.
TABLE = "embeddings.word_embeddings.weight"


def read_encoder(
    config: "Config", pad_id: int = 0, default_activation: str = "gelu"
) -> dict[str, Any]:
    """Returns arguments of a `Bert` that a config gives.

    Args:
        config: `Config`.
        pad_id: int. The family's default of `pad_token_id`.
        default_activation: str. The family's default of `hidden_act`.

    Returns:
        Dict without `pooler`; `max_sequence_length` is the number of rows of
        the position table.
    """
    for key, supported in _ONLY.items():
        config.only(key, supported)
    vocabulary = config.size("vocab_size")
    return {
        "vocabulary_size": vocabulary,
        "num_layers": config.size("num_hidden_layers"),
        "num_heads": config.heads("num_attention_heads", "hidden_size"),
        "hidden_dim": config.size("hidden_size"),
        "intermediate_dim": config.size("intermediate_size"),
        "dropout": config.fraction("hidden_dropout_prob", 0.1),
        "attention_dropout": config.fraction(
            "attention_probs_dropout_prob", 0.1
        ),
        "activation": config.choice(
            "hidden_act", ACTIVATIONS, default_activation
        ),
        "epsilon": config.positive("layer_norm_eps", 1e-12),
        "max_sequence_length": config.size("max_position_embeddings", 512),
        "num_segments": config.size("type_vocab_size", 2),
        "pad_id": config.token_id("pad_token_id", pad_id, vocabulary),
    }


def read_architecture(config: "Config", architectures: tuple[str, ...]) -> str:
    """Returns the first of `architectures` in a config.

    Args:
        config: `Config`.
        architectures: tuple of str, the supported ones, the bare model first.
    """
    found = config.strings("architectures", [architectures[0]])[0]
    if found not in architectures:
        raise ValueError(
            "`architectures` in config.json must begin with one of "
            f"{', '.join(architectures)}. Received: {found!r}"
        )
    return found


def read_num_labels(config: dict[str, Any]) -> int:
    """Returns the number of classes that a config gives."""
    return config.count("id2label") or config.size("num_labels", _LABELS)


def encoder_shapes(
    config: "Config",
    prefix: str,
    copies: tuple[str, ...],
    embedding_dim: int | None = None,
    inner: str = "encoder.layer.0.intermediate.dense.weight",
) -> Tensor:
    """Returns the tensors that carry the sizes of a config, for `Sizes`.

    Args:
        config: `Config`.
        prefix: str, of the encoder's tensors in a model with a head.
        copies: tuple of str. Other names of the embedding table.
        embedding_dim: int. Features of the embeddings. Default None: those of
            the blocks.
        inner: str. The first matrix of the first feed-forward network.
    """
    width = config.size("hidden_size")
    features = embedding_dim or width
    segments = config.size("type_vocab_size", 2)
    positions = config.size("max_position_embeddings", 512)
    shapes = {
        TABLE: (config.size("vocab_size"), features),
        "embeddings.position_embeddings.weight": (positions, features),
        "embeddings.token_type_embeddings.weight": (segments, features),
        inner: (config.size("intermediate_size"), width),
    }
    return [
        ((name, prefix + name, *(copies if name == TABLE else ())), shape)
        for name, shape in shapes.items()
    ]


def describe_encoder(
    family: str, encoder: "Bert", **expected: Any
) -> dict[str, Any]:
    """Returns the values of a config for an encoder.

    Args:
        family: str. Its name in errors.
        encoder: `Bert`.
        **expected: required values of attributes that differ from `FIXED`.

    Raises:
        ValueError: the encoder does not fit.
    """
    expect(family, encoder, **(FIXED | expected))
    return {
        "dtype": "float32",
        "vocab_size": encoder.vocabulary_size,
        "num_hidden_layers": encoder.num_layers,
        "num_attention_heads": encoder.num_heads,
        "hidden_size": encoder.hidden_dim,
        "intermediate_size": encoder.intermediate_dim,
        "hidden_act": activation_name(encoder.activation),
        "hidden_dropout_prob": encoder.dropout,
        "attention_probs_dropout_prob": encoder.attention_dropout,
        "layer_norm_eps": encoder.epsilon,
        "max_position_embeddings": encoder.max_sequence_length,
        "type_vocab_size": encoder.num_segments,
        "pad_token_id": encoder.pad_id,
    }


def position_ids(prefix: Any) -> Any:
    """Returns the buffers of a file that are skipped, for `Family`."""
    name = "embeddings.position_ids"
    return dict.fromkeys((name, prefix + name))


def describe_labels(count: int) -> dict[str, Any]:
    """Returns the values of a config for a number of classes, or none."""
    if count is None:
        return {}
    names = [f"LABEL_{number}" for number in range(count)]
    return {
        "id2label": {str(i): name for i, name in enumerate(names)},
        "label2id": {name: i for i, name in enumerate(names)},
    }


def encoder_tensors(
    encoder: "Bert",
    prefix: str,
    bare: bool,
    copies: tuple[str, ...] = (),
    positions: "Layout" = SAME,
    projection: str | None = None,
    layer: Callable[..., Any] | None = None,
    pooler: str = "pooler.dense",
) -> list[TensorName]:
    """Returns the names of an encoder's weights.

    Args:
        encoder: `Bert`.
        prefix: str, of the tensors in a model with a head.
        bare: bool. Whether the model has no head: its tensors are saved without
            the prefix, as in transformers. Both forms are read.
        copies: tuple of str. Other names of the embedding table.
        positions: `Layout` of the position table.
        projection: str. The dense layer after the embeddings, if there is one.
        layer: function from the name of a block and its number to the names of
            its weights. Default None: those of BERT.
        pooler: str. The dense layer of the pooler, if there is one.

    Returns:
        List of `TensorName`s.
    """
    layer = layer or _layer
    names = [
        TensorName("token_embedding/table/embeddings", TABLE, SAME),
        TensorName(
            "segment_embedding/table/embeddings",
            "embeddings.token_type_embeddings.weight",
            SAME,
        ),
        TensorName(
            "positions/table/embeddings",
            "embeddings.position_embeddings.weight",
            positions,
        ),
        *norm_with_old_names("embedding_norm", "embeddings.LayerNorm"),
    ]
    if encoder.embedding_dim is not None:
        names += dense("embedding_projection", projection)
    for number in range(1 if encoder.share_blocks else encoder.num_layers):
        names += layer(f"block_{number}", number)
    if encoder.pooler:
        names += dense("pooler", pooler)
    names = [_prefixed(name, prefix, bare) for name in names]
    table = names[0]
    return [table._replace(copies=(*table.copies, *copies)), *names[1:]]


def _layer(ours, number):
    theirs = f"encoder.layer.{number}"
    parts = [f"self.{part}" for part in ("query", "key", "value")]
    return [
        *attention(
            f"{ours}/self_attention",
            f"{theirs}.attention",
            *parts,
            "output.dense",
        ),
        *norm_with_old_names(
            f"{ours}/around_attention/norm",
            f"{theirs}.attention.output.LayerNorm",
        ),
        *dense(f"{ours}/feed_forward/inner", f"{theirs}.intermediate.dense"),
        *dense(f"{ours}/feed_forward/outer", f"{theirs}.output.dense"),
        *norm_with_old_names(
            f"{ours}/around_feed_forward/norm", f"{theirs}.output.LayerNorm"
        ),
    ]


def norm_with_old_names(ours: str, theirs: str) -> list[Any]:
    """Returns the names of a layer norm.

    Files converted from TensorFlow checkpoints call its weights gamma and beta.
    """
    return [
        TensorName(
            f"{ours}/gamma", f"{theirs}.weight", SAME, (f"{theirs}.gamma",)
        ),
        TensorName(f"{ours}/beta", f"{theirs}.bias", SAME, (f"{theirs}.beta",)),
    ]


def _prefixed(name, prefix, bare):
    """Adds the prefix unless `bare`, and the other form as a copy."""
    used, other = ("", prefix) if bare else (prefix, "")
    return name._replace(
        theirs=used + name.theirs,
        copies=(
            *(used + copy for copy in name.copies),
            *(other + copy for copy in (name.theirs, *name.copies)),
        ),
    )
