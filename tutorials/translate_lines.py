"""Translates lines from a file or the keyboard with a saved model."""

import pathlib
import sys

import corpora
import keras
from blank_translations import count_blanks
from small_letters import fold, known_capitals
from translation import translate

from keras_attn.text import SubwordTokenizer


def run(folder, path=""):
    """Loads a model and prints the translation of every line.

    A model whose corpus had no capital letters gets none: they are turned into
    small ones. This, and empty translations, are said on standard error, so
    that the output holds a line for each line and nothing else.

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
    translator = _Translator(
        keras.saving.load_model(folder / "model.keras", compile=False),
        SubwordTokenizer.load(folder / "tokenizer.model"),
    )
    if lines is not None:
        for line in translator.translate(lines):
            print(line)
        return
    if sys.stdin.isatty():
        print("Type a sentence and press Enter; Ctrl-D ends.")
    for line in sys.stdin:
        if line.strip():
            print(translator.translate([line.strip()])[0], flush=True)


class _Translator:
    """A model that says what it does to lines, and what it cannot do."""

    def __init__(self, model, tokenizer):
        self._model = model
        self._tokenizer = tokenizer
        self._capitals = known_capitals(tokenizer)
        self._folded_before = False

    def translate(self, lines):
        translations = translate(
            self._model, self._tokenizer, self._folded(lines)
        )
        sys.stderr.write(count_blanks(lines, translations))
        return translations

    def _folded(self, lines):
        if self._capitals is None:
            return lines
        folded = [fold(line, self._capitals) for line in lines]
        if folded != lines and not self._folded_before:
            self._folded_before = True
            but = ", ".join(sorted(self._capitals))
            sys.stderr.write(
                "Capital letters are read as small ones: the model's corpus "
                f"had none{f' but {but}' if but else ''}.\n"
            )
        return folded
