"""A model, written in the form of the published ones."""

import json

from keras_attn.atomic_files import whole_file, writable_folder
from keras_attn.pretrained.families import FAMILIES
from keras_attn.pretrained.tensor_file import safetensors, write_tensors
from keras_attn.pretrained.weights import collect


def save(model, directory):
    """Writes a model in the form in which Hugging Face publishes it.

    `load` reads it again, and so does the package transformers, with the same
    logits. Weights are written in float32.

    Args:
        model: a model that `load` could have made. A `keras_attn.models.Bert`
            is one, of type `"bert"`, alone or with one of its heads, of which
            `SpanExtractor` needs `no_answer="first"`; a
            `keras_attn.models.GPT`, of type `"gpt2"`, with its default
            `normalize_first` and `position_embedding`; a
            `keras_attn.models.Transformer`, of type `"marian"`, if made with
            `position_embedding_layout="halves"`, `output_bias=True` and a
            `max_sequence_length`.
        directory: path of a folder; made if missing. `config.json` and
            `model.safetensors` in it are replaced, once both are written:
            a write that fails leaves the old ones.

    Raises:
        ImportError: the extra `pretrained` is not installed.
        ValueError: a model that has no such form; the sentence says why.
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
