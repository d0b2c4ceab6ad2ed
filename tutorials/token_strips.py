"""Numbers of the tokens of a sentence, as strips of colour above its words."""

from typing import Any, NamedTuple

import numpy as np
from matplotlib.figure import Figure


class Strips(NamedTuple):
    """Holds what is drawn into one panel.

    Args:
        tokens: list of T str.
        rows: dict of name to float (T,).
        title: str.
    """

    tokens: Any
    rows: Any
    title: str = ""


def draw_strips(panels, maximum=1.0, colormap="Blues", label="weight"):
    """Draws panels of strips: a row for each name, a column for each token.

    Args:
        panels: list of lists of `Strips`, those of a list side by side.
        maximum: float. What the darkest colour stands for; 0 is white, and
            what is below, with a colour map of two sides, has the other one.
        colormap: str, a name that matplotlib knows.
        label: str, of the colour bar.

    Returns:
        A `matplotlib.figure.Figure`.
    """
    heights = [max(len(one.rows) for one in line) for line in panels]
    widths = [
        max(len(line[i].tokens) for line in panels)
        for i in range(len(panels[0]))
    ]
    named = max(
        len(name) for line in panels for one in line for name in one.rows
    )
    figure = Figure(
        figsize=(
            0.3 * sum(widths) + 0.09 * named * len(widths) + 1,
            0.24 * sum(heights) + 1.15 * len(panels),
        ),
        layout="constrained",
    )
    grid = figure.subplots(
        len(panels),
        len(widths),
        squeeze=False,
        height_ratios=heights,
        width_ratios=widths,
    )
    least = -maximum if colormap in ("RdBu", "PuOr") else 0
    for line, axes_line in zip(panels, grid, strict=True):
        for one, axes in zip(line, axes_line, strict=True):
            image = axes.imshow(
                np.array([*one.rows.values()]),
                aspect="auto",
                cmap=colormap,
                vmin=least,
                vmax=maximum,
                interpolation="nearest",
            )
            axes.set_yticks(range(len(one.rows)), [*one.rows], fontsize=8)
            axes.set_xticks(
                range(len(one.tokens)), one.tokens, rotation=90, fontsize=8
            )
            axes.set_title(one.title, fontsize=9)
    figure.colorbar(image, ax=list(grid.flat), label=label, fraction=0.04)
    return figure
