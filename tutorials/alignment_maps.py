"""Where models looked in one sentence: heat maps side by side, links framed."""

import numpy as np
from matplotlib.figure import Figure

from keras_attn.explain import plot_attention

_CELL = 0.3  # inches


def draw_maps(maps, source_words, target_words, links=(), backwards=()):
    """Draws a heat map for each model, three in a row.

    Args:
        maps: dict of name to weights, float (T, S), of one sentence.
        source_words: list of S str, the end token last.
        target_words: list of T str.
        links: sequence of int, for each of the first target words the place of
            the source word that it translates: it gets a frame. Default: none.
        backwards: names of the maps whose model read the source backwards, all
            of it but the end.

    Returns:
        A `matplotlib.figure.Figure`.

    Raises:
        ValueError: there is nothing to draw.
    """
    if not maps:
        raise ValueError("`maps` must hold at least one. Received: maps={}")
    rows, wide = -(-len(maps) // 3), min(3, len(maps))
    figure = Figure(
        figsize=(
            1.4 + wide * (1.4 + _CELL * len(source_words)),
            rows * (1.4 + _CELL * len(target_words)),
        ),
        layout="constrained",
    )
    panels = figure.subplots(rows, wide, squeeze=False).ravel()
    for spare in panels[len(maps) :]:
        spare.remove()
    for panel, (name, weights) in zip(panels, maps.items(), strict=False):
        columns, places = source_words, list(links)
        if name in backwards:
            *words, end = source_words
            columns = [*reversed(words), end]
            places = [len(words) - 1 - place for place in places]
        plot_attention(weights, target_words, columns, ax=panel, vmax=1.0)
        panel.set_title(name, fontsize=10)
        for row, column in enumerate(places):
            panel.plot(
                column + np.array([-0.5, 0.5, 0.5, -0.5, -0.5]),
                row + np.array([-0.5, -0.5, 0.5, 0.5, -0.5]),
                color="C1",
                linewidth=1,
            )
    return figure
