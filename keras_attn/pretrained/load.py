"""Loading of published models."""

import os
import pathlib

from keras_attn import checks
from keras_attn.pretrained.config import read_config
from keras_attn.pretrained.families import FAMILIES
from keras_attn.pretrained.tensor_file import TensorFile, safetensors
from keras_attn.pretrained.weights import fill


def load(directory):
    """Loads a model from a folder in the Hugging Face format.

    The `model_type` of `config.json` selects the class:

    - `"bert"`: `keras_attn.models.Bert`, or with a head, depending on
      `architectures`: `BertPretrainer` (masked language modeling, next sentence
      prediction, or both), `SequenceClassifier`, `MultipleChoice`,
      `TokenClassifier` or `SpanExtractor` (question answering);
    - `"gpt2"`: `keras_attn.models.GPT`;
    - `"marian"`, the translation models of Helsinki-NLP:
      `keras_attn.models.Transformer`;
    - `"xlnet"`: `keras_attn.models.XLNet`, from files with or without the
      language model head.

    The logits equal those of the transformers package. Weights are converted to
    float32, or to the variable dtype of the Keras dtype policy.

    Args:
        directory: path of a folder with `config.json` and `model.safetensors`.
            Nothing is downloaded.

    Returns:
        The model.

    Raises:
        ImportError: the extra `pretrained` is not installed.
        ValueError: missing or damaged files, an unsupported model type or
            config value, or tensors that do not fit the config.

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
                "downloaded. "
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
