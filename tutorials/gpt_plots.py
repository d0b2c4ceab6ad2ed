"""Pictures of a language model of characters."""

import numpy as np
from matplotlib.figure import Figure

_COLUMNS = 64  # characters of a line
_MOST = 5.0  # nats, of the darkest colour
_VISIBLE = {"\n": "¶", " ": " "}


def draw_surprise(text, losses, title=""):
    """Writes a text, each character on the colour of what it cost.

    Args:
        text: str.
        losses: float (characters,), nats.
        title: str.

    Returns:
        A `matplotlib.figure.Figure`.
    """
    rows = -(-len(text) // _COLUMNS)
    grid = np.full((rows, _COLUMNS), np.nan)
    grid.ravel()[: len(text)] = losses
    figure = Figure(figsize=(9, 0.8 + 0.24 * rows), layout="constrained")
    panel = figure.subplots()
    image = panel.imshow(grid, cmap="OrRd", vmin=0, vmax=_MOST, aspect="auto")
    for number, character in enumerate(text):
        row, column = divmod(number, _COLUMNS)
        panel.text(
            column,
            row,
            _VISIBLE.get(character, character),
            ha="center",
            va="center",
            family="monospace",
            fontsize=8,
            color="white" if losses[number] > 0.75 * _MOST else "black",
            parse_math=False,
        )
    panel.set(xticks=[], yticks=[], title=title)
    panel.spines[:].set_visible(False)
    figure.colorbar(image, ax=panel, label="nats", fraction=0.03, pad=0.01)
    return figure


def draw_temperatures(rows, characters, nucleus):
    """Draws the next character's probabilities at several temperatures.

    Args:
        rows: dict of title to float (V,), probabilities.
        characters: str, the V characters.
        nucleus: float. The p of top-p: what it drops is drawn pale.

    Returns:
        A `matplotlib.figure.Figure`.
    """
    base = next(iter(rows.values()))
    order = np.argsort(-base)[: min(18, len(base))]
    names = [_VISIBLE.get(characters[i], characters[i]) for i in order]
    names = ["␣" if name == " " else name for name in names]
    figure = Figure(figsize=(3.2 * len(rows), 2.8), layout="constrained")
    panels = figure.subplots(1, len(rows), sharey=True, squeeze=False)[0]
    for panel, (title, p) in zip(panels, rows.items(), strict=True):
        kept = in_nucleus(p[None], nucleus)[0]
        panel.bar(
            np.arange(len(order)),
            p[order],
            color=["C0" if kept[i] else "0.8" for i in order],
        )
        panel.set_xticks(np.arange(len(order)), names, family="monospace")
        panel.set_title(f"{title}: {kept.sum()} of {len(p)} kept", fontsize=9)
    panels[0].set(ylabel="probability")
    return figure


def in_nucleus(p, nucleus):
    """Returns which ids top-p keeps.

    The fewest likeliest that together have at least `nucleus`.

    Args:
        p: float (B, V), probabilities.
        nucleus: float in (0, 1].

    Returns:
        Bool (B, V).

    Examples:
    >>> in_nucleus(np.array([[0.1, 0.6, 0.3]]), 0.7).tolist()
    [[False, True, True]]
    """
    order = np.argsort(-p, axis=-1, kind="stable")
    ranked = np.take_along_axis(p, order, -1)
    before = np.cumsum(ranked, -1) - ranked
    kept = np.zeros(p.shape, bool)
    np.put_along_axis(kept, order, before < nucleus, -1)
    return kept


def draw_choices(text, kept, size):
    """Draws how many characters top-p leaves to choose from, along a text.

    Args:
        text: str.
        kept: int (characters,), how many are left at each.
        size: int. V, how many there are.

    Returns:
        A `matplotlib.figure.Figure`.
    """
    figure = Figure(figsize=(9.5, 2.6), layout="constrained")
    panel = figure.subplots()
    places = np.arange(len(text))
    panel.bar(places, kept, color="C0")
    names = ["␣" if c == " " else _VISIBLE.get(c, c) for c in text]
    panel.set_xticks(places, names, family="monospace", fontsize=8)
    panel.set(
        ylabel=f"characters kept, of {size}",
        xlim=(-0.6, len(text) - 0.4),
        yscale="log",
        ylim=(0.8, size),
    )
    panel.set_yticks([1, 2, 5, 10, 20], ["1", "2", "5", "10", "20"])
    return figure


def draw_trade(curves):
    """Draws what sampling with less freedom costs and gains.

    Args:
        curves: dict of name to a list of (label, variety, share): bits a
            character of the samples, and the share of words that exist.

    Returns:
        A `matplotlib.figure.Figure`.
    """
    figure = Figure(figsize=(7, 3.8), layout="constrained")
    panel = figure.subplots()
    for (name, points), style in zip(
        curves.items(), ("o-", "s--", "^:"), strict=False
    ):
        labels, varieties, shares = zip(*points, strict=True)
        panel.plot(varieties, shares, style, label=name)
        for label, x, y in zip(labels, varieties, shares, strict=True):
            panel.annotate(
                label,
                (x, y),
                textcoords="offset points",
                xytext=(5, 5),
                fontsize=8,
            )
    panel.set(
        xlabel="different stretches of three words, of all that were sampled",
        ylabel="words that the text has",
    )
    panel.legend()
    return figure
