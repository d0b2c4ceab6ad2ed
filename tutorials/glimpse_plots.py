"""Pictures of a network's looks: the patches, and the paths on canvases."""

import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle


def pixel(places, side):
    """Returns places from -1 to 1 as pixels of a canvas.

    Args:
        places: float (..., 2), x and y.
        side: int. Pixels of the canvas, each way.

    Returns:
        Float (..., 2), -0.5 at the outer edge of the first pixel.
    """
    return (np.asarray(places) + 1) / 2 * side - 0.5


def frame_patches(axes, place, side, patch_size, patches):
    """Draws the frames of the patches of one look.

    Args:
        axes: Matplotlib axes with a canvas.
        place: float (2,), x and y.
        side: int. Pixels of the canvas, each way.
        patch_size: int. g.
        patches: int. k.
    """
    for patch in range(patches):
        size = patch_size * 2**patch
        # As the sensor: on whole pixels.
        first = np.floor((np.asarray(place) + 1) / 2 * side - size / 2 + 0.5)
        axes.add_patch(
            Rectangle(
                first - 0.5, size, size, fill=False, edgecolor=f"C{patch}"
            )
        )


def draw_paths(images, places, guesses, titles, patch_size):
    """Draws where a network looked, one canvas beside the other.

    Args:
        images: float (N, side, side, 1).
        places: float (N, T, 2).
        guesses: int (N, T). What it guessed after each look.
        titles: list of N str.
        patch_size: int. Of the sharpest patch, which is framed.

    Returns:
        Matplotlib figure.
    """
    count, side = images.shape[:2]
    rows = -(-count // 4)
    columns = min(count, 4)
    figure = Figure(figsize=(2.4 * columns, 2.8 * rows), layout="constrained")
    panels = figure.subplots(rows, columns, squeeze=False).flat
    for spare in panels[count:]:
        spare.remove()
    for number, axes in enumerate(panels[:count]):
        axes.imshow(images[number, ..., 0], cmap="gray_r", vmin=0, vmax=1)
        path = pixel(places[number], side)
        axes.plot(path[:, 0], path[:, 1], "-", color="C0", linewidth=1)
        for step, (x, y) in enumerate(path):
            axes.text(
                x,
                y,
                step + 1,
                color="white",
                fontsize=7,
                ha="center",
                va="center",
                bbox={"boxstyle": "circle,pad=0.15", "fc": "C3", "lw": 0},
            )
        frame_patches(axes, places[number, -1], side, patch_size, 1)
        said = " ".join(map(str, guesses[number]))
        axes.set_title(f"{titles[number]}\n{said}", fontsize=8)
        axes.set(xlim=(-0.5, side - 0.5), ylim=(side - 0.5, -0.5))
        axes.set(xticks=[], yticks=[])
    return figure
