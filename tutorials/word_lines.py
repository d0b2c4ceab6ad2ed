"""Translates lines from a file or the keyboard, word by word, with a model."""

import keras
from pair_table import PairTable, words_of
from program_lines import input_lines, saved_folder


def run(folder, path=""):
    """Loads a model and prints the translation of every line.

    Args:
        folder: path of the folder that a training wrote.
        path: file with one sentence a line, plain or .gz; empty: the keyboard.

    Raises:
        ValueError: no model in the folder, or a file that cannot be read.
    """
    folder = saved_folder(folder, "model.keras", "words.json")
    lines = input_lines(path)
    model = keras.saving.load_model(folder / "model.keras", compile=False)
    table = PairTable.load(folder / "words.json")
    if path:
        print(*translate(model, table, lines), sep="\n")
        return
    for line in lines:
        print(*translate(model, table, [line]), flush=True)


def translate(model, table, sentences):
    """Translates sentences, greedily.

    Args:
        model: `keras_attn.models.RecurrentSeq2Seq`.
        table: `PairTable`, the words that it was trained with.
        sentences: list of str. One without a word is translated by nothing.

    Returns:
        List of str, none longer than 60 words, or twice the longest source.
    """
    counts = [len(words_of(sentence)) for sentence in sentences]
    there = [i for i, count in enumerate(counts) if count]
    found = [""] * len(sentences)
    if there:
        ids = table.sources([sentences[i] for i in there], max(counts) + 1)
        tokens = model.generate(ids, max(60, 2 * max(counts))).tokens[:, 0]
        for i, row in zip(there, tokens, strict=True):
            found[i] = table.target_text(row)
    return found
