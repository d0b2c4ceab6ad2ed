"""Saving of models in the Hugging Face format."""

import json

from keras_attn import checks
from keras_attn.atomic_files import whole_file, writable_folder
from keras_attn.pretrained.families import FAMILIES
from keras_attn.pretrained.tensor_file import safetensors, write_tensors
from keras_attn.pretrained.weights import collect


def save(model, directory):
    """Saves a model to a folder in the Hugging Face format.

    Both `load` and the transformers package read it, with the same logits.
    Weights are saved in float32.

    Args:
        model: a model of a class that `load` returns: a
            `keras_attn.models.Bert` (`"bert"`), with or without one of its
            heads (`SpanExtractor` only with `no_answer="first"`); a
            `keras_attn.models.GPT` (`"gpt2"`) with the default
            `normalize_first` and `position_embedding`; a
            `keras_attn.models.Transformer` (`"marian"`) with
            `position_embedding_layout="halves"`, `output_bias=True` and a
            `max_sequence_length`; or a `keras_attn.models.XLNet` (`"xlnet"`)
            with equal `dropout` and `attention_dropout`.
        directory: path of a folder; created if missing. `config.json` and
            `model.safetensors` in it are replaced after both are written: a
            failed write leaves the old ones.

    Raises:
        ImportError: the extra `pretrained` is not installed.
        ValueError: the model has no such format; the message gives the reason.
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
    for family in FAMILIES:
        if family.serves(model):
            break
    else:
        known = ", ".join(family.model_type for family in FAMILIES)
        raise ValueError(
            f"`model` must be of one of the families {known}. "
            f"Received: {type(model).__name__}"
        )
    config = json.dumps(family.describe(model), indent=2, sort_keys=True)
    arrays = collect(model, family)
    folder = writable_folder("directory", directory)
    with (
        whole_file(folder / "config.json") as config_path,
        whole_file(folder / "model.safetensors") as weights_path,
    ):
        config_path.write_text(config + "\n", encoding="utf-8")
        write_tensors(weights_path, arrays)
