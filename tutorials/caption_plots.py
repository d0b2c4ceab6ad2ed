"""Pictures, and where a model looked in them, word by word."""

import numpy as np
from matplotlib.figure import Figure

_INCHES = 1.25  # of a panel


def draw_pictures(pictures, titles, columns=6, frames=()):
    """Draws pictures side by side, each with a title.

    Args:
        pictures: uint8 (B, H, W, 3).
        titles: list of B str.
        columns: int. Pictures in a row. Default 6.
        frames: the numbers of the pictures that get a frame. Default: none.

    Returns:
        A `matplotlib.figure.Figure`.
    """
    rows = -(-len(pictures) // columns)
    figure = Figure(
        figsize=(1.5 * _INCHES * columns, 1.75 * _INCHES * rows),
        layout="constrained",
    )
    panels = figure.subplots(rows, columns, squeeze=False).ravel()
    for panel in panels[len(pictures) :]:
        panel.remove()
    for number, (panel, picture, title) in enumerate(
        zip(panels, pictures, titles, strict=False)
    ):
        panel.imshow(picture)
        panel.set(xticks=[], yticks=[])
        panel.set_title(title, fontsize=8)
        for side in panel.spines.values():
            side.set(visible=number in frames, color="C1", linewidth=3)
    return figure


def draw_looks(pictures, captions, weights, grid):
    """Draws, a row for each picture, where each word was looked for.

    Args:
        pictures: uint8 (B, H, W, 3).
        captions: list of B lists of str, the words, the end among them.
        weights: list of B float (T, S), the weights of each word over the
            places of the grid, row by row.
        grid: tuple of int, rows and columns of the grid.

    Returns:
        A `matplotlib.figure.Figure`.
    """
    columns = 1 + max(map(len, captions))
    height, width = pictures.shape[1:3]
    figure = Figure(
        figsize=(
            _INCHES * columns * (width / height) ** 0.5,
            1.25 * _INCHES * len(pictures) * (height / width) ** 0.5,
        ),
        layout="constrained",
    )
    rows = figure.subplots(len(pictures), columns, squeeze=False)
    for panels, picture, words, looks in zip(
        rows, pictures, captions, weights, strict=True
    ):
        panels[0].imshow(picture)
        for panel, word, look in zip(panels[1:], words, looks, strict=False):
            panel.imshow(lit(picture, look.reshape(grid)))
            panel.set_title(word, fontsize=9)
        for panel in panels[1 + len(words) :]:
            panel.remove()
        for panel in panels[: 1 + len(words)]:
            panel.set(xticks=[], yticks=[])
            panel.spines[:].set_visible(False)
    return figure


def lit(picture, look):
    """Returns a picture that is bright where it was looked at.

    Args:
        picture: uint8 (H, W, 3).
        look: float (rows, columns), weights over its places.

    Returns:
        Float (H, W, 3), 0 to 1.
    """
    height, width = picture.shape[:2]
    rows = np.arange(height) * look.shape[0] // height
    columns = np.arange(width) * look.shape[1] // width
    share = look[rows][:, columns] / max(float(look.max()), 1e-9)
    return picture / 255 * (0.2 + 0.8 * share[..., None])
