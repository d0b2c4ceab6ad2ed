"""A saved tagger at work, on a file or on the keyboard."""

import pathlib
import sys

import corpora
import keras
import numpy as np
import treebank
from word_table import WordTable


def predict_tags(model, table, sentences, batch_size=64):
    """Returns the tags of sentences.

    Args:
        model: `TokenClassifier`.
        table: `WordTable`, with which it was trained.
        sentences: list of lists of str, none of them empty.
        batch_size: int.

    Returns:
        List of lists of str.
    """
    found = [None] * len(sentences)
    order = sorted(range(len(sentences)), key=lambda i: len(sentences[i]))
    for first in range(0, len(order), batch_size):
        places = order[first : first + batch_size]
        rows = [sentences[i] for i in places]
        # Few shapes: a compiled backend makes one program for each.
        length = max(8, 1 << (len(rows[-1]) - 1).bit_length())
        spare = [rows[-1]] * (batch_size - len(rows))
        logits = model.predict_on_batch(table.encode(rows + spare, length))
        # Padding is no tag of a word.
        ids = 1 + np.argmax(logits[: len(rows), :, 1:], axis=-1)
        tags = table.names(ids, map(len, rows))
        for place, row in zip(places, tags, strict=True):
            found[place] = row
    return found


def accuracy(sentences, predictions):
    """Returns the share of words whose tag is right.

    Args:
        sentences: list of lists of (word, tag).
        predictions: list of lists of tags.
    """
    right = [
        tag == predicted
        for sentence, row in zip(sentences, predictions, strict=True)
        for (_, tag), predicted in zip(sentence, row, strict=True)
    ]
    return sum(right) / len(right)


def run(folder, path=""):
    """Tags the lines of a file, or what is typed, and prints them.

    Args:
        folder: path of a folder that the tutorial wrote.
        path: str. File of sentences, one a line; or a treebank (`.conllu`,
            `.conllu.gz`), of which the accuracy is printed; empty: the
            keyboard.

    Raises:
        ValueError: there is no model in the folder, or the file cannot be read.
    """
    folder = pathlib.Path(folder)
    for name in ("model.keras", "words.json"):
        if not (folder / name).is_file():
            raise ValueError(
                "MODEL must be a folder with model.keras and words.json. "
                f"Received: {folder}, without {name}"
            )
    if path.removesuffix(".gz").endswith(".conllu"):
        tagged, lines = treebank.read_tagged(path), None
    else:
        tagged, lines = None, corpora.read_lines(path) if path else None
    model = keras.saving.load_model(folder / "model.keras", compile=False)
    table = WordTable.load(folder / "words.json")
    if tagged:
        words = [[word for word, _ in sentence] for sentence in tagged]
        share = accuracy(tagged, predict_tags(model, table, words))
        print(f"{share:.2%} of {sum(map(len, words)):,} words are right")
        return
    if lines is None and sys.stdin.isatty():
        print("Type a sentence and press Enter; Ctrl-D ends.")
    for line in sys.stdin if lines is None else lines:
        words = line.split()
        if words:
            (tags,) = predict_tags(model, table, [words], batch_size=1)
            pairs = zip(words, tags, strict=True)
            print(" ".join(f"{word}/{tag}" for word, tag in pairs), flush=True)
        elif lines is not None:
            print()  # a line for each line of the file
