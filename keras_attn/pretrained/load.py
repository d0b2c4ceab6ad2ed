"""A published model, read from its files."""

import os
import pathlib

from keras_attn import checks
from keras_attn.pretrained.config import read_config
from keras_attn.pretrained.families import FAMILIES
from keras_attn.pretrained.tensor_file import TensorFile, safetensors
from keras_attn.pretrained.weights import fill


def load(directory):
    """Reads a model in the form in which Hugging Face publishes it.

    The `model_type` of `config.json` says what is made:

    - `"bert"`: a `keras_attn.models.Bert`, or, as `architectures` says, with a
      head: `BertPretrainer` (masked words, next sentence, or both),
      `SequenceClassifier`, `MultipleChoice`, `TokenClassifier`,
      `SpanExtractor` (questions);
    - `"gpt2"`: a `keras_attn.models.GPT`;
    - `"marian"`, the translators of Helsinki-NLP: a
      `keras_attn.models.Transformer`.

    The logits are those of the package transformers; weights become float32,
    or what the dtype policy of Keras says.

    Args:
        directory: path of a folder with `config.json` and
            `model.safetensors`. Nothing is fetched from a network.

    Returns:
        The model.

    Raises:
        ImportError: the extra `pretrained` is not installed.
        ValueError: files that are missing or damaged, a kind of model or a
            value of its config that is not supported, or tensors that do not
            fit the config.

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
    safetensors()
    folder = pathlib.Path(directory)
    paths = []
    for name in ("config.json", "model.safetensors"):
        paths.append(folder / name)
        if not paths[-1].is_file():
            raise ValueError(
                f"`directory` must be a folder with {name} in it; nothing is "
                "fetched from a network. "
                f"Received: directory={os.fspath(directory)!r}"
            )
    config = read_config(paths[0])
    families = {family.model_type: family for family in FAMILIES}
    model_type = checks.choice(
        "model_type", config.values.get("model_type"), tuple(families)
    )
    family = families[model_type]
    with TensorFile(paths[1]) as file:
        model = family.make(config, file.names)
        fill(model, family, file)
    return model
