"""Pictures of who sees whom, and of what is guessed together."""

import numpy as np
from matplotlib.figure import Figure


def draw_visibility(panels, words, unread=()):
    """Draws who sees whom, a panel a model.

    Args:
        panels: dict of title to bool (T, T), True where the output at a row's
            token depends on a column's token.
        words: list of T str.
        unread: titles of panels whose rows are what is guessed *of* the token,
            and are marked on the diagonal.

    Returns:
        A `matplotlib.figure.Figure`.
    """
    size = len(words)
    side = max(2.0, 0.13 * size)  # inches
    figure = Figure(
        figsize=(0.9 + (side + 0.2) * len(panels), side + 1.2),
        layout="constrained",
    )
    font = 8 if size < 16 else 7
    drawn = figure.subplots(1, len(panels), sharey=True, squeeze=False)[0]
    for panel, (title, sees) in zip(drawn, panels.items(), strict=True):
        panel.imshow(sees, cmap="Blues", vmin=0, vmax=1.4)
        if title in unread:
            for place in range(size):
                panel.text(
                    place, place, "?", ha="center", va="center", color="C3"
                )
        panel.set_xticks(range(size), words, rotation=90, fontsize=font)
        panel.set_yticks(range(size), words, fontsize=font)
        panel.set_xticks(np.arange(size) - 0.5, minor=True)
        panel.set_yticks(np.arange(size) - 0.5, minor=True)
        panel.grid(which="minor", color="white", linewidth=0.5)
        panel.tick_params(which="minor", length=0)
        panel.set_title(title, fontsize=9)
        panel.set_xlabel("depends on the token here", fontsize=8)
    drawn[0].set_ylabel("what is said here", fontsize=8)
    return figure


def draw_pairs(tables, firsts, seconds):
    """Draws the probability of each pair of words, a panel a model.

    Args:
        tables: dict of title to float (first words, second words), that sum
            to 1 or less.
        firsts: list of str.
        seconds: list of str.

    Returns:
        A `matplotlib.figure.Figure`.
    """
    figure = Figure(
        figsize=(0.6 + 3.6 * len(tables), 3.0), layout="constrained"
    )
    panels = figure.subplots(1, len(tables), sharey=True, squeeze=False)[0]
    for panel, (title, table) in zip(panels, tables.items(), strict=True):
        panel.imshow(table, cmap="Blues", vmin=0, vmax=1.5 / len(firsts))
        for (row, column), chance in np.ndenumerate(table):
            panel.text(
                column,
                row,
                f"{chance:.0%}",
                ha="center",
                va="center",
                fontsize=7,
                color="white" if chance > 1 / len(firsts) else "black",
            )
        panel.set_xticks(range(len(seconds)), seconds, rotation=45, fontsize=8)
        panel.set_yticks(range(len(firsts)), firsts, fontsize=8)
        panel.set_title(title, fontsize=9)
    return figure


def draw_scores(arms):
    """Draws scores with their spread, a bar an arm.

    Args:
        arms: dict of name to a list of float in [0, 1], a seed each.

    Returns:
        A `matplotlib.figure.Figure`.
    """
    figure = Figure(figsize=(5.5, 2.8), layout="constrained")
    panel = figure.subplots()
    scores = [np.array(found) for found in arms.values()]
    spread = [x.std(ddof=1) if len(x) > 1 else 0 for x in scores]
    bars = panel.bar(
        list(arms),
        [x.mean() for x in scores],
        0.6,
        yerr=spread if any(spread) else None,
        color=[f"C{number}" for number in range(len(arms))],
    )
    panel.bar_label(bars, [f"{x.mean():.1%}" for x in scores])
    panel.set(ylim=(0, 1.1), ylabel="accuracy on the test")
    return figure
