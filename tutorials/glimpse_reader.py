"""A saved glimpse network at work: what it sees in a reader's pictures."""

import json
import pathlib

import glimpse_network  # noqa: F401, what the file of the model is made of
import keras
import numpy as np
from glimpse_plots import draw_paths
from program_lines import saved_folder

# More canvases are read, not drawn.
_DRAWN = 16


def run(folder, path, out):
    """Prints the class of each picture, and draws where the network looked.

    Args:
        folder: path, with `model.keras` and `results.json`.
        path: str, as for `read_pictures`.
        out: path. Folder for the drawing, `looks.png`.

    Raises:
        ValueError: a file is missing, or cannot be read.
    """
    folder = saved_folder(folder, "model.keras", "results.json")
    settings = json.loads((folder / "results.json").read_text("utf-8"))
    images = read_pictures(path, int(settings["settings"]["side"]))
    model = keras.saving.load_model(folder / "model.keras", compile=False)
    seen = model.predict(images, batch_size=128, verbose=0)
    chances = np.exp(seen["logits"] - seen["logits"].max(-1, keepdims=True))
    chances /= chances.sum(-1, keepdims=True)
    guesses = chances.argmax(-1)
    for number, (said, last) in enumerate(
        zip(guesses, chances[:, -1], strict=True)
    ):
        looks = " ".join(map(str, said))
        print(f"{number}: {said[-1]} ({last.max():.0%}), look by look {looks}")
    out.mkdir(parents=True, exist_ok=True)
    draw_paths(
        images[:_DRAWN],
        seen["places"][:_DRAWN],
        guesses[:_DRAWN],
        [f"picture {number}" for number in range(len(images))],
        model.arguments["patch_size"],
    ).savefig(out / "looks.png", dpi=150)
    print(f"Where it looked is drawn in {out / 'looks.png'}")


def read_pictures(path, side):
    """Reads grey pictures, bright on dark.

    Args:
        path: str. A `.npy` file of (N, h, w) or (h, w), or a `.png` file.
            Whole numbers are taken as 0 to 255, others as 0 to 1.
        side: int. Pixels of the network's canvas, each way; smaller pictures
            are put into its middle.

    Returns:
        Float32 (N, side, side, 1).

    Raises:
        ValueError: there is no such file, or something else in it.
    """
    if not path:
        raise ValueError("INPUT must name a .npy or .png file to look at.")
    try:
        images = _read(pathlib.Path(path))
    except (OSError, ValueError, SyntaxError):
        raise ValueError(
            f"INPUT must be a .npy or .png file. Received: INPUT={path}"
        ) from None
    images = images[None] if images.ndim == 2 else images
    if (
        images.ndim != 3
        or images.dtype.kind not in "buif"
        or not len(images)
        or not all(1 <= size <= side for size in images.shape[1:])
    ):
        raise ValueError(
            f"INPUT must hold pictures of at most {side}x{side} pixels. "
            f"Received: {images.dtype} {images.shape}"
        )
    whole = images.dtype.kind in "ui"
    images = images.astype("float32") / (255 if whole else 1)
    if not (images.min() >= 0 and images.max() <= 1):
        raise ValueError(
            "INPUT must hold whole numbers from 0 to 255, or others from 0 to "
            f"1. Received: {path}"
        )
    edges = [
        ((side - size) // 2, side - size - (side - size) // 2)
        for size in images.shape[1:]
    ]
    return np.pad(images, [(0, 0), *edges])[..., None]


def _read(path):
    """Returns the numbers of a file."""
    if path.suffix == ".npy":
        return np.load(path)
    if path.suffix != ".png":
        raise ValueError("another kind of file")
    from matplotlib.image import imread

    pixels = imread(path)  # 0 to 1, with one, three or four channels
    return pixels if pixels.ndim == 2 else pixels[..., :3].mean(-1)
