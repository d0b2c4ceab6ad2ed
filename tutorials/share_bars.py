"""Pictures of what is likely: a few names and their shares, as bars."""

import textwrap

from matplotlib.figure import Figure

_WIDTH = 56  # characters of a line of a title


def draw_shares(panels, columns=2):
    """Draws shares as bars, a panel each.

    Args:
        panels: dict of title to a list of (name, share in [0, 1]).
        columns: int. Panels side by side.

    Returns:
        A `matplotlib.figure.Figure`.
    """
    rows = -(-len(panels) // columns)
    longest = max(map(len, panels.values()))
    titles = ["\n".join(map(_wrapped, t.split("\n"))) for t in panels]
    lines = 1 + max(title.count("\n") for title in titles)
    height = 0.4 + 0.15 * lines + 0.2 * longest  # inches, of a panel
    figure = Figure(figsize=(9.5, 0.6 + height * rows), layout="constrained")
    drawn = figure.subplots(rows, columns, squeeze=False).ravel()
    for panel in drawn[len(panels) :]:
        panel.remove()
    for panel, title, best in zip(drawn, titles, panels.values(), strict=False):
        names, shares = zip(*best, strict=True)
        bars = panel.barh(names, shares)
        panel.bar_label(bars, [f" {share:.0%}" for share in shares], fontsize=8)
        panel.invert_yaxis()
        panel.set(xlim=(0, 1.15), xticks=[])
        panel.set_title(title, fontsize=9)
        panel.spines[["top", "right", "bottom"]].set_visible(False)
    return figure


def _wrapped(line):
    return textwrap.fill(line, _WIDTH)
