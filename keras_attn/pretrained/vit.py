"""Vision Transformers: ViT and DeiT, with and without classifiers.

The families `vit` (Dosovitskiy et al. 2021, https://arxiv.org/abs/2010.11929)
and `deit` (Touvron et al. 2021, https://arxiv.org/abs/2012.12877) of Hugging
Face's transformers.
"""

from typing import TYPE_CHECKING, Any

from keras_attn.models import VisionTransformer
from keras_attn.pretrained.activations import ACTIVATIONS, activation_name
from keras_attn.pretrained.bert_encoder import describe_labels, read_num_labels
from keras_attn.pretrained.expectations import PLAIN_BLOCKS, expect
from keras_attn.pretrained.family import Family, Sizes
from keras_attn.pretrained.heads import read_head
from keras_attn.pretrained.layouts import Layout
from keras_attn.pretrained.tensor_names import (
    TensorName,
    attention,
    dense,
    norm,
)

if TYPE_CHECKING:
    from keras_attn.pretrained.config import Config


_HEADS = {
    "vit": {
        "encoder": "ViTModel",
        "image_classification": "ViTForImageClassification",
    },
    "deit": {
        "encoder": "DeiTModel",
        "image_classification": "DeiTForImageClassification",
        "distilled_image_classification": (
            "DeiTForImageClassificationWithTeacher"
        ),
    },
}
_DISTILLED = "distilled_image_classification"
_FIXED = {
    **PLAIN_BLOCKS,
    "activation_dropout": 0.0,
    "gated": False,
    "normalize_first": True,
    "pooling": "token",
}
# Learned vectors, saved as (1, length, D).
_ROWS = Layout(
    lambda array: array[None], lambda array, shape: array.reshape(shape)
)


def _patches(size: int) -> Layout:
    """Returns the layout of a convolution whose stride is its width.

    In the file (D, C, P, P); our kernel has one axis for the P x P x C values
    of a patch.
    """

    def to_file(array):
        kernel = array.reshape(size, size, -1, array.shape[-1])
        return kernel.transpose(3, 2, 0, 1)

    def from_file(array, shape):
        return array.transpose(2, 3, 1, 0).reshape(shape)

    return Layout(to_file, from_file)


def _read(model_type: str, config: "Config") -> dict[str, Any]:
    """Returns the arguments of a model that a config gives."""
    config.only("qkv_bias", True)
    head = read_head(config, _HEADS[model_type])
    size = config.size("image_size", 224)
    return {
        "image_shape": (size, size, config.size("num_channels", 3)),
        "patch_size": config.size("patch_size", 16),
        "num_layers": config.size("num_hidden_layers"),
        "num_heads": config.heads("num_attention_heads", "hidden_size"),
        "hidden_dim": config.size("hidden_size"),
        "intermediate_dim": config.size("intermediate_size"),
        "num_classes": None if head == "encoder" else read_num_labels(config),
        "distillation_token": model_type == "deit",
        "distillation_classifier": head == _DISTILLED,
        "dropout": config.fraction("hidden_dropout_prob", 0.0),
        "attention_dropout": config.fraction(
            "attention_probs_dropout_prob", 0.0
        ),
        "activation": config.choice("hidden_act", ACTIVATIONS, "gelu"),
        "epsilon": config.positive("layer_norm_eps", 1e-12),
    }


def _sizes(model_type, config):
    given = _read(model_type, config)
    size, channels = given["patch_size"], given["image_shape"][-1]
    width = given["hidden_dim"]
    patches = (given["image_shape"][0] // size) ** 2
    tokens = 1 + given["distillation_token"]
    shapes = {
        "embeddings.patch_embeddings.projection.weight": (
            *(width, channels, size, size),
        ),
        "embeddings.position_embeddings": (1, tokens + patches, width),
        "encoder.layer.0.intermediate.dense.weight": (
            given["intermediate_dim"],
            width,
        ),
    }
    found = [
        ((f"{model_type}.{name}", name), shape)
        for name, shape in shapes.items()
    ]
    if given["num_classes"] is not None:
        name = _classifier(given["distillation_classifier"])
        found.append(((f"{name}.weight",), (given["num_classes"], width)))
    return Sizes(found, {"num_hidden_layers": given["num_layers"]})


def _classifier(distilled):
    return "cls_classifier" if distilled else "classifier"


def _describe(model_type, model):
    expect("Vision Transformer", model, **_FIXED)
    height, width, channels = model.image_shape
    if height != width:
        raise ValueError(
            "A Vision Transformer model must have an image_shape with equal "
            f"height and width. Received: image_shape={model.image_shape}"
        )
    head = "encoder" if model.num_classes is None else "image_classification"
    if model.distillation_classifier:
        head = _DISTILLED
    return {
        "model_type": model_type,
        "architectures": [_HEADS[model_type][head]],
        "dtype": "float32",
        "image_size": height,
        "patch_size": model.patch_size,
        "num_channels": channels,
        "num_hidden_layers": model.num_layers,
        "num_attention_heads": model.num_heads,
        "hidden_size": model.hidden_dim,
        "intermediate_size": model.intermediate_dim,
        "hidden_act": activation_name(model.activation),
        "hidden_dropout_prob": model.dropout,
        "attention_probs_dropout_prob": model.attention_dropout,
        "layer_norm_eps": model.epsilon,
        "qkv_bias": True,
        **describe_labels(model.num_classes),
    }


def _tensors(model_type, model):
    embedding = "patch_embedding"
    names = [
        TensorName(
            f"{embedding}/projection/kernel",
            "embeddings.patch_embeddings.projection.weight",
            _patches(model.patch_size),
        ),
        dense(
            f"{embedding}/projection", "embeddings.patch_embeddings.projection"
        )[1],
        TensorName(f"{embedding}/class_token", "embeddings.cls_token", _ROWS),
        TensorName(
            f"{embedding}/positions", "embeddings.position_embeddings", _ROWS
        ),
        *norm("norm", "layernorm"),
    ]
    if model.distillation_token:
        token = "distillation_token"
        names.append(
            TensorName(f"{embedding}/{token}", f"embeddings.{token}", _ROWS)
        )
    for number in range(model.num_layers):
        names += _block(f"block_{number}", f"encoder.layer.{number}")
    # The model without a classifier is saved without the prefix.
    bare, prefix = model.num_classes is None, f"{model_type}."
    names = [
        name._replace(
            theirs=name.theirs if bare else prefix + name.theirs,
            copies=(prefix + name.theirs if bare else name.theirs,),
        )
        for name in names
    ]
    if not bare:
        distilled = model.distillation_classifier
        names += dense("classifier", _classifier(distilled))
        if distilled:
            names += dense("distillation_classifier", "distillation_classifier")
    return names


def _block(ours, theirs):
    parts = [f"attention.{part}" for part in ("query", "key", "value")]
    return [
        *attention(
            f"{ours}/self_attention",
            f"{theirs}.attention",
            *parts,
            "output.dense",
        ),
        *norm(f"{ours}/around_attention/norm", f"{theirs}.layernorm_before"),
        *dense(f"{ours}/feed_forward/inner", f"{theirs}.intermediate.dense"),
        *dense(f"{ours}/feed_forward/outer", f"{theirs}.output.dense"),
        *norm(f"{ours}/around_feed_forward/norm", f"{theirs}.layernorm_after"),
    ]


def _family(model_type: str) -> Family:
    parts = "pooler.", "embeddings.mask_token"
    return Family(
        model_type=model_type,
        serves=lambda model: (
            isinstance(model, VisionTransformer)
            and model.distillation_token == (model_type == "deit")
        ),
        make=lambda config, names: VisionTransformer(
            **_read(model_type, config)
        ),
        describe=lambda model: _describe(model_type, model),
        tensors=lambda model: _tensors(model_type, model),
        sizes=lambda config: _sizes(model_type, config),
        constants=lambda model: {},
        signature=(f"{model_type}.embeddings.cls_token",),
        heads=_HEADS[model_type],
        head_prefixes=(
            *("classifier.", "cls_classifier.", "distillation_classifier."),
            "decoder.",  # of masked image modeling
            *parts,
            *(f"{model_type}.{part}" for part in parts),
        ),
    )


VIT = _family("vit")
DEIT = _family("deit")
