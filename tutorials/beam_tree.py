"""The candidates of a beam search by their score: what lived, ended, was cut.

`keras_attn.explain.plot_beam` draws the hypotheses of any search of the
library. Here the candidates that never lived are drawn too, and height is the
log-probability, so that one sees by how much each was missed.
"""

from typing import NamedTuple

import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D


class Candidate(NamedTuple):
    """One of the 2k likeliest continuations of a step.

    Args:
        tokens: tuple of int. All its tokens, the new one last.
        score: float. log p(tokens | source), in nats.
        fate: `"lives"`, `"ended"`, or `"cut"`: it was among the 2k, and is
            not kept.
    """

    tokens: tuple
    score: float
    fate: str


# Marker, whether it is filled, colour, and what the legend says.
_LOOKS = {
    "lives": ("o", True, "#1f4e9c", "lives, goes on"),
    "given up": ("o", False, "#6b7fa3", "lived, nobody goes on from it"),
    "ended": ("s", True, "#1e7b34", "ended, kept apart"),
    "cut": ("x", False, "#a04040", "cut: not among the k"),
}


def fates(steps):
    """Says what became of every candidate, later steps known.

    Args:
        steps: list with a list of `Candidate` for each step.

    Returns:
        Dict of tokens to `"lives"`, `"given up"`, `"ended"` or `"cut"`.
    """
    found = {}
    for number, candidates in enumerate(steps):
        later = steps[number + 1] if number + 1 < len(steps) else []
        parents = {c.tokens[:-1] for c in later if c.fate != "cut"}
        for candidate in candidates:
            fate = candidate.fate
            if fate == "lives" and candidate.tokens not in parents:
                fate = "given up"
            found[candidate.tokens] = fate
    return found


def plot_tree(steps, names, best=(), title=None):
    """Draws all candidates of a search.

    Args:
        steps: list with a list of `Candidate` for each step.
        names: callable that takes an id and returns a str.
        best: tuple of int. The sequence whose way is drawn thick. Default:
            none.
        title: str. Default: none.

    Returns:
        The `matplotlib.figure.Figure`.
    """
    figure = Figure(
        figsize=(max(6.0, 0.95 * len(steps) + 1.5), 5.2), layout="constrained"
    )
    axes = figure.subplots()
    became = fates(steps)
    scores = {c.tokens: c.score for step in steps for c in step}
    scores[()] = 0.0
    close = 0.03 * -min(scores.values())
    above = {}  # the last label of each step
    for tokens, fate in sorted(became.items(), key=lambda i: -scores[i[0]]):
        marker, filled, colour, _ = _LOOKS[fate]
        x, y = len(tokens), scores[tokens]
        thick = tokens == best[:x]
        axes.plot(
            [x - 1, x],
            [scores[tokens[:-1]], y],
            color=colour,
            linewidth=2.6 if thick else 0.8,
            linestyle=":" if fate == "cut" else "-",
            zorder=2 if thick else 1,
        )
        axes.plot(
            [x],
            [y],
            marker,
            color=colour,
            markersize=6,
            markerfacecolor=colour if filled else "white",
            zorder=3,
        )
        if fate != "cut":
            # A label that would lie on the one above it stands below its mark.
            under = above.get(x, np.inf) - y < close
            above[x] = -np.inf if under else y
            axes.annotate(
                names(tokens[-1]),
                (x, y),
                xytext=(5, -11 if under else 4),
                textcoords="offset points",
                fontsize=8,
                color=colour,
                parse_math=False,
                zorder=4,
            )
    axes.plot([0], [0], "D", color="black", markersize=6, zorder=3)
    axes.set(
        xlabel="step: tokens so far",
        ylabel="log p(y | x), in nats",
        xticks=range(len(steps) + 1),
        xlim=(-0.3, len(steps) + 0.8),
    )
    if title is not None:
        axes.set_title(title)
    axes.legend(handles=_handles(became), fontsize=8, loc="lower left")
    return figure


def _handles(became):
    shown = set(became.values())
    return [
        Line2D(
            [],
            [],
            marker=marker,
            linestyle="",
            color=colour,
            markerfacecolor=colour if filled else "white",
            label=says,
        )
        for fate, (marker, filled, colour, says) in _LOOKS.items()
        if fate in shown
    ]
