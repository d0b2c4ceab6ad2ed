"""Pictures of several translators beside each other."""

from matplotlib.figure import Figure

from keras_attn.explain import plot_attention

STYLES = {
    "none": "o-",
    "additive": "s--",
    "general": "^-.",
    "transformer": "D:",
}
_CELL = 0.3  # inches


def draw_by_length(scores):
    """Draws BLEU, and the share of right sentences, over the length.

    Args:
        scores: dict of name to what `scores_by_length` returned, all of the
            same groups.

    Returns:
        A `matplotlib.figure.Figure`, one curve a name in each panel.
    """
    figure = Figure(figsize=(9.5, 3.6), layout="constrained")
    left, right = figure.subplots(1, 2)
    for name, rows in scores.items():
        labels = [_range(row["words"]) for row in rows]
        style = STYLES.get(name, "x-")
        left.plot(labels, [row["bleu"] for row in rows], style, label=name)
        right.plot(labels, [100 * row["right"] for row in rows], style)
    left.set(ylabel="BLEU", ylim=(0, 102))
    right.set(ylabel="right to the letter (%)", ylim=(0, 102))
    for panel in (left, right):
        panel.set_xlabel("words of the source")
    left.legend()
    return figure


def draw_alignments(source_pieces, found):
    """Draws where models looked as they translated one sentence.

    Args:
        source_pieces: list of S str, the end token last.
        found: dict of name to (pieces that it wrote, weights): list of L str
            and float (L, S).

    Returns:
        A `matplotlib.figure.Figure`, one map a name.

    Raises:
        ValueError: there is nothing to draw.
    """
    if not found:
        raise ValueError("`found` must hold at least one map. Received: {}")
    tallest = max(len(pieces) for pieces, _ in found.values())
    figure = Figure(
        figsize=(
            len(found) * (1.3 + _CELL * len(source_pieces)),
            1.6 + _CELL * tallest,
        ),
        layout="constrained",
    )
    panels = figure.subplots(1, len(found), squeeze=False)[0]
    for panel, (name, (pieces, weights)) in zip(
        panels, found.items(), strict=True
    ):
        plot_attention(weights, pieces, source_pieces, ax=panel, vmax=1.0)
        panel.set_title(name, fontsize=10)
    return figure


def _range(words):
    shortest, longest = words
    if shortest == longest:
        return str(shortest)
    return f"{shortest} to {longest}"
