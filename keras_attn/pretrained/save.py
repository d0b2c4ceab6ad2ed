"""Saving of models in the Hugging Face format."""

import contextlib
import json
import re
from typing import Any

from keras_attn import checks
from keras_attn.atomic_files import whole_file, writable_folder
from keras_attn.models import GPT, Transformer
from keras_attn.pretrained.checkpoint import INDEX, WHOLE
from keras_attn.pretrained.families import families
from keras_attn.pretrained.tensor_file import safetensors, write_tensors
from keras_attn.pretrained.weights import collect, tensor_bytes
from keras_attn.typing import PathLike

_SHARD = re.compile(r"model-\d{5}-of-\d{5}\.safetensors")


def save(
    model: Any,
    directory: PathLike,
    max_shard_size: float = 5,
    model_type: str | None = None,
) -> None:
    """Saves a model to a folder in the Hugging Face format.

    Both `load` and the transformers package read it, with the same logits.
    Weights are saved in float32.

    Args:
        model: a model of a class that `load` returns: a
            `keras_attn.models.Bert` (`"bert"`; `"albert"`, `"distilbert"`,
            `"electra"` and `"modernbert"` with the arguments that `load` and
            the guide on published weights list) or a
            `keras_attn.models.Roberta` (`"roberta"`, `"xlm-roberta"`), with or
            without a head of the family (`SpanExtractor` only with
            `no_answer="first"`); a `keras_attn.models.GPT` (`"gpt2"`) with the
            default `normalize_first` and `position_embedding`, or one with
            rotary positions and the options of a family (`"llama"`,
            `"mistral"`, `"qwen2"`, `"qwen3"`, `"smollm3"`, `"gemma2"`,
            `"gemma3_text"`, `"phi3"`, `"olmo2"`, `"gpt_neox"`, `"mixtral"`,
            `"gpt_oss"`); a `keras_attn.models.Transformer` (`"marian"`) with
            `position_embedding_layout="halves"`, `output_bias=True` and a
            `max_sequence_length`, one (`"bart"`, `"mbart"`) with
            `position_embedding="learned"`, `normalize_embedding=True` and one
            vocabulary, or one (`"t5"`, `"mt5"`) with a `T5Position`
            on each side, `normalization="rms_norm"`, `normalize_first=True`,
            `position_embedding=None` and neither biases nor
            `scale_embedding`; a `keras_attn.models.VisionTransformer`
            (`"vit"`, `"deit"`) of square images with a class token; or a
            `keras_attn.models.XLNet` (`"xlnet"`) with equal `dropout` and
            `attention_dropout`.
        directory: path of a folder; created if missing. `config.json` and
            `model.safetensors` in it are replaced after both are written: a
            failed write leaves the old ones.
        max_shard_size: int or float > 0. Most GB, of 1e9 bytes, in one file.
            The weights of a larger model are in shards,
            `model-00001-of-00003.safetensors` and so on, listed in
            `model.safetensors.index.json`. A single larger tensor gets its own
            shard. Default 5.
        model_type: str. The `model_type` of `config.json`, if the model fits
            several: `"xlm-roberta"` for a `Roberta`; `"electra"` for a `Bert`
            without a pooler and `embedding_dim`; `"mistral"` for a `GPT` that
            is also a Llama; `"mt5"` for a T5. Default None: the first one named
            above that fits.

    Raises:
        ImportError: the extra `pretrained` is not installed.
        ValueError: the model has no such format; the message gives the reason;
            `max_shard_size` is not positive, or the model is not of the
            `model_type`.
        OSError: the files cannot be written.

    Examples:
        >>> import os, tempfile
        >>> directory = tempfile.mkdtemp()
        >>> model = keras_attn.models.Transformer(
        ...     12, num_layers=1, num_heads=1, hidden_dim=4, intermediate_dim=4,
        ...     position_embedding_layout="halves", max_sequence_length=16,
        ...     output_bias=True)
        >>> keras_attn.pretrained.save(model, directory)
        >>> sorted(os.listdir(directory))
        ['config.json', 'model.safetensors']
    """
    safetensors()
    directory = checks.path("directory", directory)
    checks.positive("max_shard_size", max_shard_size)
    family, values = _described(model, model_type)
    config = json.dumps(values, indent=2, sort_keys=True)
    sizes = tensor_bytes(model, family)
    shards = _shards(sizes, max_shard_size * 1e9)
    folder = writable_folder("directory", directory)
    # All files are renamed at the end.
    with contextlib.ExitStack() as files:
        path = files.enter_context(whole_file(folder / "config.json"))
        path.write_text(config + "\n", encoding="utf-8")
        if len(shards) > 1:
            path = files.enter_context(whole_file(folder / INDEX))
            path.write_text(_index(sizes, shards), encoding="utf-8")
        for name, tensors in shards.items():
            path = files.enter_context(whole_file(folder / name))
            write_tensors(path, collect(model, family, tensors))
    _remove_old(folder, {*shards, INDEX} if len(shards) > 1 else {*shards})


def _described(model, model_type):
    """Returns the family of a model and the values of its config."""
    fitting = {f.model_type: f for f in families() if f.serves(model)}
    if not fitting:
        known = ", ".join(family.model_type for family in families())
        raise ValueError(
            f"`model` must be of one of the families {known}. "
            f"Received: {type(model).__name__}"
        )
    if model_type is not None:
        checks.choice("model_type", model_type, tuple(fitting))
        fitting = {model_type: fitting[model_type]}
    errors = []
    for family in fitting.values():
        try:
            return family, family.describe(model)
        except ValueError as error:
            errors.append(error)
    if isinstance(model, (GPT, Transformer)):
        # Of families that differ in the options of blocks, the closest.
        errors.sort(key=lambda error: getattr(error, "count", 0))
    raise errors[0]


def _remove_old(folder, kept):
    """Removes the weights of another save, which `load` might prefer."""
    for path in folder.glob("model*.safetensors*"):
        saved = path.name in (WHOLE, INDEX) or _SHARD.fullmatch(path.name)
        if saved and path.name not in kept:
            path.unlink()


def _shards(sizes, most):
    """Returns {file: set of tensors}, filled in order up to a size in bytes."""
    groups, size = [set()], 0
    for tensor, added in sizes.items():
        if groups[-1] and size + added > most:
            groups.append(set())
            size = 0
        groups[-1].add(tensor)
        size += added
    if len(groups) == 1:
        return {WHOLE: groups[0]}
    return {
        f"model-{number:05}-of-{len(groups):05}.safetensors": group
        for number, group in enumerate(groups, 1)
    }


def _index(sizes, shards):
    listed = {
        tensor: name for name, tensors in shards.items() for tensor in tensors
    }
    index = {
        "metadata": {"total_size": sum(sizes.values())},
        "weight_map": dict(sorted(listed.items())),
    }
    return json.dumps(index, indent=2) + "\n"
