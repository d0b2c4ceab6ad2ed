"""A saved language model of characters: goes on with texts."""

import json

import keras
import numpy as np
from character_table import CharacterTable
from program_lines import input_lines, saved_folder

from keras_attn.decoding import Sampling

_MODEL, _TEXT = "model.keras", "text.json"
_LENGTH = 200  # characters that are written behind a text


def continued(model, prompts, length, context, strategy):
    """Goes on with texts, also beyond the context of the model.

    It writes half a context, takes what it has written last for the prompt of
    the next half, and so on.

    Args:
        model: `GPT`.
        prompts: list of int (characters,), none empty.
        length: int. Characters to write behind each.
        context: int. T, that the model was trained with.
        strategy: `Sampling`, of one sample.

    Returns:
        Int32 (prompts, length).
    """
    half = context // 2
    written = [np.asarray(prompt, "int32") for prompt in prompts]
    before = [len(prompt) for prompt in written]
    for start in range(0, length, half):
        count = min(half, length - start)
        added = model.generate(
            [row[-half:] for row in written],
            count,
            strategy=strategy,
            verbose=0,
        ).tokens[:, 0]
        written = [
            np.concatenate([row, new])
            for row, new in zip(written, added, strict=True)
        ]
    return np.stack([row[n:] for row, n in zip(written, before, strict=True)])


def save(folder, model, table, context):
    """Writes a model, its characters and its context into a folder."""
    model.save(folder / _MODEL)
    content = {"characters": table.characters, "context": context}
    (folder / _TEXT).write_text(json.dumps(content), encoding="utf-8")


def run(folder, path=""):
    """Goes on with lines of a file, or of the keyboard.

    Args:
        folder: path of the folder that a training wrote.
        path: a file with a text a line; empty: the keyboard.

    Raises:
        ValueError: no model in the folder, no text, or one with characters
            that the training text had not.
    """
    folder = saved_folder(folder, _MODEL, _TEXT)
    model = keras.saving.load_model(folder / _MODEL, compile=False)
    content = json.loads((folder / _TEXT).read_text(encoding="utf-8"))
    table = CharacterTable(content["characters"])
    context = content["context"]
    for line in input_lines(path):
        if not line:
            continue
        ids = continued(
            model,
            [table.encode(line)],
            _LENGTH,
            context,
            Sampling(temperature=0.8),
        )
        print(line + table.decode(ids[0]), end="\n\n", flush=True)
