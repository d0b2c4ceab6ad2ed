"""Pictures of batches, and of what positions do."""

import numpy as np
from matplotlib.figure import Figure


def draw_batches(batches, words):
    """Draws the rows of batches, each slot with its word and its position.

    Args:
        batches: dict of title to a pair of int (B, T): ids, and positions, -1
            where there is no token.
        words: list of str, by id.

    Returns:
        A `matplotlib.figure.Figure`.
    """
    heights = [len(ids) for ids, _ in batches.values()]
    figure = Figure(
        figsize=(8.5, 0.9 * len(heights) + 0.34 * sum(heights)),
        layout="constrained",
    )
    panels = figure.subplots(
        len(heights), 1, height_ratios=heights, squeeze=False
    )[:, 0]
    for panel, (title, (ids, positions)) in zip(
        panels, batches.items(), strict=True
    ):
        shown = np.where(positions < 0, np.nan, positions)
        panel.imshow(
            shown, cmap="viridis_r", vmin=-2, vmax=10, alpha=0.5, aspect="auto"
        )
        for (row, column), place in np.ndenumerate(positions):
            word = words[ids[row, column]]
            panel.text(
                column,
                row,
                f"{word} {place}" if place >= 0 else "-1",
                ha="center",
                va="center",
                fontsize=8,
                color="black" if place >= 0 else "grey",
            )
        panel.set_xticks(np.arange(ids.shape[1]) - 0.5, minor=True)
        panel.set_yticks(np.arange(ids.shape[0]) - 0.5, minor=True)
        panel.grid(which="minor", color="grey", linewidth=0.5)
        panel.tick_params(which="minor", length=0)
        panel.set(xticks=[], yticks=range(len(ids)))
        panel.set_title(title, fontsize=9)
    return figure


def draw_levels(groups, ylabel, floor=1e-9, limit=1e-5, note="rounding"):
    """Draws numbers of very different size as bars on a logarithmic scale.

    Args:
        groups: dict of str, what a bar's colour means, to a dict of name to
            float. The names are the same in all groups.
        ylabel: str.
        floor: float. What is less is drawn as this much.
        limit: float. A line is drawn here.
        note: str, written to the line.

    Returns:
        A `matplotlib.figure.Figure`.
    """
    names = list(next(iter(groups.values())))
    figure = Figure(
        figsize=(1.5 + 1.25 * len(names), 3.3), layout="constrained"
    )
    panel = figure.subplots()
    width = 0.8 / len(groups)
    for number, (label, found) in enumerate(groups.items()):
        shift = width * (number - (len(groups) - 1) / 2)
        heights = [max(found[name], floor) for name in names]
        panel.bar(np.arange(len(names)) + shift, heights, width, label=label)
    panel.axhline(limit, color="grey", linewidth=0.8)
    panel.text(-0.5, 1.3 * limit, note, fontsize=8)
    panel.set_xticks(range(len(names)), names)
    panel.set_yscale("log")
    panel.set(ylabel=ylabel, ylim=(floor / 2, None))
    if len(groups) > 1:
        figure.legend(loc="outside upper center", ncols=len(groups))
    return figure


def draw_tables(tables):
    """Draws tables of positions, and the products of their rows.

    Args:
        tables: dict of title to float (P, D).

    Returns:
        A `matplotlib.figure.Figure`.
    """
    figure = Figure(figsize=(10, 3.3 * len(tables)), layout="constrained")
    for panels, (title, table) in zip(
        figure.subplots(len(tables), 3, squeeze=False),
        tables.items(),
        strict=True,
    ):
        far = np.abs(table).max()
        panels[0].imshow(table, cmap="RdBu", vmin=-far, vmax=far, aspect="auto")
        panels[0].set(title=title, xlabel="feature", ylabel="position")
        products = table @ table.T
        panels[1].imshow(products, cmap="viridis")
        panels[1].set(title="products of its rows", xlabel="position")
        for start, look in ((0, "-"), (10, "--"), (20, ":")):
            panels[2].plot(
                products[start, start:], look, label=f"from position {start}"
            )
        panels[2].set(title="the same, by distance", xlabel="distance")
        panels[2].legend(fontsize=8)
    return figure
