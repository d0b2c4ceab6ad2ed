"""Translates lines from a file or the keyboard with a saved model."""

import pathlib
import sys

import corpora
import keras
from translation import translate

from keras_attn.text import SubwordTokenizer


def run(folder, path=""):
    """Loads a model and prints the translation of every line.

    Args:
        folder: path of the folder that a training wrote.
        path: file with one sentence a line, plain or .gz; empty: the keyboard.

    Raises:
        ValueError: no model in the folder, or a file that cannot be read.
    """
    folder = pathlib.Path(folder)
    for name in ("model.keras", "tokenizer.model"):
        if not (folder / name).is_file():
            raise ValueError(
                f"MODEL must be a folder with model.keras and tokenizer.model. "
                f"Received: {folder}, without {name}"
            )
    lines = corpora.read_lines(path) if path else None
    model = keras.saving.load_model(folder / "model.keras", compile=False)
    tokenizer = SubwordTokenizer.load(folder / "tokenizer.model")
    if lines is not None:
        for line in translate(model, tokenizer, lines):
            print(line)
        return
    if sys.stdin.isatty():
        print("Type a sentence and press Enter; Ctrl-D ends.")
    for line in sys.stdin:
        if line.strip():
            print(translate(model, tokenizer, [line.strip()])[0], flush=True)
