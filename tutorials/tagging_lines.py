"""A saved tagger at work, on a file or on the keyboard."""

import keras
import numpy as np
import treebank
from program_lines import input_lines, saved_folder
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
    folder = saved_folder(folder, "model.keras", "words.json")
    scored = path.removesuffix(".gz").endswith(".conllu")
    tagged = treebank.read_tagged(path) if scored else None
    lines = None if scored else input_lines(path)
    model = keras.saving.load_model(folder / "model.keras", compile=False)
    table = WordTable.load(folder / "words.json")
    if scored:
        words = [[word for word, _ in sentence] for sentence in tagged]
        share = accuracy(tagged, predict_tags(model, table, words))
        print(f"{share:.2%} of {sum(map(len, words)):,} words are right")
        return
    for line in lines:
        pairs = []
        if words := line.split():
            (tags,) = predict_tags(model, table, [words], batch_size=1)
            pairs = zip(words, tags, strict=True)
        # A line for each line of the file, empty ones too.
        print(" ".join(f"{word}/{tag}" for word, tag in pairs), flush=True)
