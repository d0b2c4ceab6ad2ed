"""A saved captioner: describes pictures, and says where it looked."""

import pathlib

import keras
import numpy as np
from caption_plots import draw_looks
from captioner import Captioner
from pair_table import PairTable
from picture_files import pictures_below, read_picture
from program_lines import saved_folder
from scene_pictures import paint
from scenes import draw_scenes

_LONGEST = 30  # words of a caption
_DRAWN = 12  # pictures that are drawn with their words
_MODEL, _WORDS = "model.keras", "words.json"


def describe(model, table, pictures, longest=_LONGEST, batch_size=64):
    """Describes pictures, greedily.

    Args:
        model: `Captioner`.
        table: `PairTable`, whose target words it was trained with.
        pictures: uint8 (B, H, W, 3), those of the model.
        longest: int. The most words.
        batch_size: int. Pictures that are decoded together.

    Returns:
        List of B str; and list of B float (T, S), for each word, the end among
        them, the weights over the places of the grid.
    """
    decoded = model.generate(
        pictures,
        longest,
        batch_size=batch_size,
        return_weights=True,
        verbose=0,
    )
    texts = [table.target_text(row) for row in decoded.tokens[:, 0]]
    weights = [
        np.asarray(looks[0, 0, 0, :length])
        for looks, (length,) in zip(
            decoded.weights, decoded.lengths, strict=True
        )
    ]
    return texts, weights


def save(folder, model, table):
    """Writes a captioner into a folder."""
    model.save(folder / _MODEL)
    table.save(folder / _WORDS)


def run(folder, path=""):
    """Prints what pictures show, and draws where each word was looked for.

    Args:
        folder: path of the folder that a training wrote; the drawing goes
            there.
        path: a picture, or a folder of pictures; empty: new scenes.

    Raises:
        ValueError: no model in the folder, or no picture.
    """
    folder = saved_folder(folder, _MODEL, _WORDS)
    model = keras.saving.load_model(
        folder / _MODEL,
        custom_objects={"Captioner": Captioner},
        compile=False,
    )
    table = PairTable.load(folder / _WORDS)
    height, width, _ = model.picture_shape
    if path:
        names = [str(found) for found in pictures_below(path)]
        pictures = np.stack([read_picture(n, height, width) for n in names])
    elif height == width:
        seed = int(np.random.default_rng().integers(2**31))
        pictures = paint(draw_scenes(5, height, seed), height, seed)
        names = [f"scene {number}" for number in range(1, 6)]
    else:
        raise ValueError(
            "INPUT must be a picture or a folder of pictures for a model that "
            "was trained on some. Received: nothing"
        )
    texts, weights = describe(model, table, pictures)
    for name, text in zip(names, texts, strict=True):
        print(f"{name}: {text}")
    figure = draw_looks(
        pictures[:_DRAWN],
        [[*text.split(), "."] for text in texts[:_DRAWN]],
        weights[:_DRAWN],
        model.grid,
    )
    drawing = pathlib.Path(folder) / "described.png"
    figure.savefig(drawing, dpi=150)
    print(f"Where each word was looked for: {drawing}")
