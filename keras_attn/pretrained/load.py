"""Loading of published models."""

import os
import pathlib
from typing import Any

import keras

from keras_attn import checks
from keras_attn.backend import DeferredValues
from keras_attn.pretrained.checkpoint import Checkpoint
from keras_attn.pretrained.config import Config, read_config
from keras_attn.pretrained.families import families
from keras_attn.pretrained.family import check_sizes
from keras_attn.pretrained.tensor_file import safetensors
from keras_attn.pretrained.weights import fill
from keras_attn.typing import PathLike


def load(
    directory: PathLike, head: Any = None, allow_nonfinite: bool = False
) -> keras.Model:
    """Loads a model from a folder, in the format of Hugging Face or of Keras.

    A folder without `config.json` must have `model.keras`, a file that
    `model.save` wrote; its model is loaded as it is, not compiled.

    In the Hugging Face format, the `model_type` of `config.json` selects the
    class; without it, the names of the tensors do, if only one family has them:

    - `"albert"`: a `keras_attn.models.Bert` with `share_blocks=True` and an
      `embedding_dim`, or with a head;
    - `"bart"` and `"mbart"`: `keras_attn.models.Transformer` with learned
      positions and `normalize_embedding=True`;
    - `"bert"`: `keras_attn.models.Bert`, or with a head, which `head` or else
      `architectures` selects: `BertPretrainer` (masked language modeling, next
      sentence prediction, or both), `SequenceClassifier`, `MultipleChoice`,
      `TokenClassifier` or `SpanExtractor` (question answering). Without both,
      the result is a `Bert`;
    - `"deit"` and `"vit"`: `keras_attn.models.VisionTransformer`, with
      `num_classes` unless it is a bare model;
    - `"distilbert"`: a `Bert` with `num_segments=None` and `pooler=False`, or
      with a head;
    - `"electra"`, discriminators and generators: a `Bert` with `pooler=False`
      and, if the widths differ, an `embedding_dim`, or with a head, such as
      `ReplacedTokenDetector`;
    - `"gpt2"`, `"llama"` (Llama 2 and 3, SmolLM2), `"mistral"`, `"qwen2"`
      (Qwen 2 and 2.5), `"qwen3"`, `"smollm3"`, `"gemma2"`, `"gemma3_text"`,
      `"phi3"` (Phi-3 and 4), `"olmo2"`, `"gpt_neox"` (GPT-NeoX, Pythia),
      `"mixtral"` and `"gpt_oss"` (not in MXFP4): `keras_attn.models.GPT`;
    - `"marian"`, the translation models of Helsinki-NLP:
      `keras_attn.models.Transformer`;
    - `"modernbert"`: a `Bert` with rotary positions and windows, or with a
      head, whose classifiers have `transform=True`;
    - `"t5"` (T5, T5 1.1, Flan-T5, ByT5) and `"mt5"`:
      `keras_attn.models.Transformer` with a `T5Position` on each side;
    - `"roberta"` and `"xlm-roberta"`: `keras_attn.models.Roberta`, or with a
      head;
    - `"xlnet"`: `keras_attn.models.XLNet`, from files with or without the
      language model head.

    The logits equal those of the transformers package. A decoder-only model has
    the end ids of `generation_config.json`, if the folder has this file.
    Weights are converted to float32, or to the variable dtype of the Keras
    dtype policy.

    Args:
        directory: path of a folder with `config.json` and `model.safetensors`,
            or shards with their index `model.safetensors.index.json`; or with
            `model.keras`. Nothing is downloaded or unpickled.
        head: the head of a BERT or one of its successors, instead of that of
            `architectures`: `"masked_lm"`, `"sequence_classification"`,
            `"multiple_choice"`, `"token_classification"`,
            `"question_answering"`, or `"encoder"`, which is none of them; for
            BERT and ALBERT also `"pretraining"`, for BERT `"next_sentence"`,
            for ELECTRA `"replaced_tokens"`; for ViT and DeiT
            `"image_classification"` or `"encoder"`, for DeiT also
            `"distilled_image_classification"`. The file must hold the weights
            of the head; those of other heads are skipped, with a warning.
            Default None.
        allow_nonfinite: bool. Whether weights may be NaN or infinite. Default
            False.

    Returns:
        The model.

    Raises:
        ImportError: the extra `pretrained` is not installed.
        ValueError: missing or damaged files, an unsupported model type or
            config value, or tensors that do not fit the config, are not of a
            float dtype, or not finite. Headers are checked before any memory is
            allocated for weights.

    Examples:
        >>> import tempfile
        >>> directory = tempfile.mkdtemp()
        >>> model = keras_attn.models.Transformer(
        ...     12, num_layers=1, num_heads=1, hidden_dim=4, intermediate_dim=4,
        ...     position_embedding_layout="halves", max_sequence_length=16,
        ...     output_bias=True)
        >>> keras_attn.pretrained.save(model, directory)
        >>> keras_attn.pretrained.load(directory).max_sequence_length
        16
    """
    if head is not None:
        checks.string("head", head)
    checks.boolean("allow_nonfinite", allow_nonfinite)
    folder = pathlib.Path(checks.path("directory", directory))
    path, keras_file = folder / "config.json", folder / "model.keras"
    if not path.is_file() and keras_file.is_file():
        if head is not None:
            raise ValueError(
                f"`head` must be None for a folder with {keras_file.name}. "
                f"Received: head={head!r}"
            )
        return keras.saving.load_model(keras_file, compile=False)
    safetensors()
    if not path.is_file():
        raise ValueError(
            f"`directory` must be a folder with {path.name} or "
            f"{keras_file.name} in it; nothing is downloaded. "
            f"Received: directory={os.fspath(directory)!r}"
        )
    config = read_config(path)
    with Checkpoint(folder) as file:
        family = _family(config, file.names)
        if head is not None:
            config = _with_head(config, family, head)
        check_sizes(family.sizes(config), file)
        with DeferredValues() as values:
            model = family.make(config, file.names)
            fill(model, family, config, file, values, allow_nonfinite)
    return model


def _family(config, names):
    """Returns the family of a config, or else of the names of the tensors."""
    signed = [f for f in families() if not names.isdisjoint(f.signature)]
    if config.values.get("model_type") is None and len(signed) == 1:
        return signed[0]
    known = {family.model_type: family for family in families()}
    return config.choice("model_type", known)


def _with_head(config, family, head):
    if head not in family.heads:
        expected = ", ".join(map(repr, family.heads)) or "None"
        raise ValueError(
            f"`head` must be one of {expected} for a {family.model_type} "
            f"model. Received: head={head!r}"
        )
    heads = {"architectures": [family.heads[head]]}
    return Config(config.values | heads, config.generation)
