"""Pictures of tables: who sees whom, and how much."""

import numpy as np
from matplotlib.figure import Figure


def draw_grids(
    panels,
    rows=None,
    columns=None,
    ylabel="query",
    xlabel="key",
    numbers=False,
    across=4,
    side=2.3,
    most=1.0,
):
    """Draws tables side by side, a panel each, dark where much is.

    Args:
        panels: dict of title to bool or float (T, S), from 0 to `most`. What is
            NaN is crossed out.
        rows: list of str that name the rows, or a dict of such by title.
            Default: none.
        columns: likewise, of the columns.
        ylabel: str. What a row is.
        xlabel: str. What a column is.
        numbers: bool. Write each number into its cell. Default False.
        across: int. Panels in a row of the figure.
        side: float. Inches of a panel.
        most: float. What is drawn darkest.

    Returns:
        A `matplotlib.figure.Figure`.
    """
    across = min(across, len(panels))
    down = -(-len(panels) // across)
    figure = Figure(
        figsize=(0.7 + (side + 0.5) * across, (side + 0.9) * down),
        layout="constrained",
    )
    drawn = figure.subplots(down, across, squeeze=False)
    for panel in drawn.flat[len(panels) :]:
        panel.axis("off")
    for panel, (title, table) in zip(drawn.flat, panels.items(), strict=False):
        table = np.asarray(table, "float64")
        panel.imshow(table, cmap="Blues", vmin=0, vmax=1.3 * most)
        for (row, column), value in np.ndenumerate(table):
            said = "×" if np.isnan(value) else f"{value:.2f}" if numbers else ""
            if said:
                panel.text(
                    column,
                    row,
                    said,
                    ha="center",
                    va="center",
                    fontsize=7,
                    color="white" if value > 0.7 * most else "black",
                )
        _name(panel, table.shape, _of(rows, title), _of(columns, title))
        panel.set_title(title, fontsize=9)
    for panel in drawn[:, 0]:
        panel.set_ylabel(ylabel)
    for panel in drawn[-1]:
        panel.set_xlabel(xlabel)
    return figure


def _of(names, title):
    return names.get(title) if isinstance(names, dict) else names


def _name(panel, shape, rows, columns):
    for axis, count, names in (
        (panel.yaxis, shape[0], rows),
        (panel.xaxis, shape[1], columns),
    ):
        if names is None:
            axis.set_ticks([])
        else:
            axis.set_ticks(range(count), names, fontsize=8)
        axis.set_ticks(np.arange(count) - 0.5, minor=True)
    if columns is not None and max(map(len, columns), default=0) > 2:
        panel.tick_params(axis="x", which="major", rotation=90)
    panel.grid(which="minor", color="white", linewidth=0.6)
    panel.tick_params(which="minor", length=0)
