"""A saved BERT at work: what it puts where a sentence says [MASK]."""

import keras
import numpy as np
from program_lines import input_lines, saved_folder
from share_bars import draw_shares

from keras_attn.text import WordPieceTokenizer

_MODEL, _PIECES = "pretrainer.keras", "vocab.txt"


def save(folder, model, tokenizer):
    """Writes a `BertPretrainer` and its tokenizer into a folder."""
    model.save(folder / _MODEL)
    tokenizer.save(folder)


def load(folder):
    """Reads what `save` wrote.

    Args:
        folder: path.

    Returns:
        `BertPretrainer` and `WordPieceTokenizer`.

    Raises:
        ValueError: a file is missing.
    """
    folder = saved_folder(folder, _MODEL, _PIECES)
    model = keras.saving.load_model(folder / _MODEL, compile=False)
    return model, WordPieceTokenizer.load(folder)


def fillings(model, tokenizer, text):
    """Returns the probabilities of what each [MASK] of a sentence may hide.

    Args:
        model: `BertPretrainer`.
        tokenizer: `WordPieceTokenizer`.
        text: str.

    Returns:
        Float (masks, V).

    Raises:
        ValueError: no [MASK] in the sentence, or too long a sentence.
    """
    inputs = tokenizer.pack([text])
    (places,) = np.nonzero(inputs["token_ids"][0] == tokenizer.mask_id)
    if not len(places):
        raise ValueError(
            f"The sentence must have a [MASK] in it. Received: {text!r}"
        )
    inputs["masked_positions"] = places[None].astype("int32")
    logits = model(inputs)["token_logits"][0]
    return keras.ops.convert_to_numpy(keras.ops.softmax(logits))


def likeliest(p, tokenizer, count=5):
    """Returns the likeliest pieces, a list of (piece, probability)."""
    order = np.argsort(-p)[:count]
    return [(tokenizer.vocabulary[i], float(p[i])) for i in order]


def draw_fillings(sentences, model, tokenizer, count=6):
    """Draws what the first [MASK] of each sentence is filled with.

    Args:
        sentences: list of str.
        model: `BertPretrainer`.
        tokenizer: `WordPieceTokenizer`.
        count: int. Pieces that are drawn.

    Returns:
        A `matplotlib.figure.Figure`.
    """
    panels = {
        sentence.replace("[MASK]", "____"): likeliest(
            fillings(model, tokenizer, sentence)[0], tokenizer, count
        )
        for sentence in sentences
    }
    return draw_shares(panels)


def run(folder, path=""):
    """Prints what fills the masks of lines of a file, or of the keyboard.

    Args:
        folder: path of the folder that a training wrote.
        path: a file of sentences with [MASK]; empty: the keyboard.

    Raises:
        ValueError: no model in the folder, or a line without a mask.
    """
    model, tokenizer = load(folder)
    for line in input_lines(path):
        if not line.strip():
            continue
        for p in fillings(model, tokenizer, line):
            words = likeliest(p, tokenizer)
            print(line, *(f"{word} {share:.0%}" for word, share in words))
