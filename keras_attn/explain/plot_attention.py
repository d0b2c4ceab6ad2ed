"""plot_attention: attention weights as heat maps, by layer and head."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from keras_attn import checks
from keras_attn.explain.arguments import real_number
from keras_attn.explain.attention_map import token_text
from keras_attn.explain.drawn_layers import drawn_layers
from keras_attn.explain.label_fonts import label_fonts
from keras_attn.typing import TensorLike

# Inches per token, at least and at most.
_SMALLEST_CELL, _LARGEST_CELL = 0.02, 0.5
# Inches: a map's longer side, per token for readable labels, and maximum. Short
# sentences fill the first; the second keeps 60 tokens readable.
_PANEL = {"single": (3.6, 0.24, 16.0), "grid": (2.2, 0.125, 9.0)}
_POINTS_PER_INCH = 72


def plot_attention(
    weights: TensorLike,
    query_tokens: Sequence[Any] | None = None,
    key_tokens: Sequence[Any] | None = None,
    head: int | None = None,
    title: str | None = None,
    ax: Any = None,
    cmap: str = "cividis",
    vmax: float | None = None,
    row: int = 0,
) -> Any:
    """Draws which keys each query attends to.

    One row per query, from the top; one column per key. All maps of a figure
    share one color scale, from 0 to `vmax`. The figure is independent of
    pyplot: save it with `figure.savefig(path)`.

    Labels may be in any script for which a font is installed; right-to-left
    text is drawn as matplotlib draws it.

    Args:
        weights: float (T, S), (N, T, S) or (1, N, T, S), array or tensor.
            Attention weights of N heads, not negative. Or an `AttentionMap`,
            which includes its tokens and head indices; or a list of them, drawn
            below each other, the heads of a layer side by side.
        query_tokens: list of T str. Labels of the rows. Default: those of the
            map, else positions.
        key_tokens: list of S str. Labels of the columns. Default: same as for
            the rows.
        head: int. The only head to draw. Default None: all heads, in a grid.
        title: str, above the figure. Default: none.
        ax: `matplotlib.axes.Axes` to draw a single map into, or a list or
            array of N of them. Default: a new figure, large enough to read
            the labels.
        cmap: str, a matplotlib colormap. Default "cividis", which is
            readable for color-blind people.
        vmax: float > 0. Weight at the upper end of the color scale. Default:
            the largest weight drawn.
        row: int in [0, B). Batch row of an `AttentionMap`.

    Returns:
        The `matplotlib.figure.Figure`, that of `ax` if given.

    Raises:
        ImportError: matplotlib is not installed.
        ValueError: `weights` of another shape, negative or not finite; a
            number of tokens or axes that does not fit; `head` or `row` out of
            range; `vmax` not positive; or tokens or axes for several layers.

    Examples:
        >>> import numpy as np
        >>> weights = np.tril(np.ones((2, 3, 3))) / [[1], [2], [3]]
        >>> tokens = ["the", "cat", "sat"]
        >>> figure = plot_attention(weights, tokens, tokens, title="Causal")
        >>> [axes.get_title() for axes in figure.axes[:2]]
        ['head 0', 'head 1']
    """
    figure_class = _figure_class()
    layers = drawn_layers(weights, query_tokens, key_tokens, head, row)
    if vmax is None:
        vmax = max(float(layer.maps.max()) for layer in layers) or 1.0
    elif not 0 < real_number("vmax", vmax) < float("inf"):
        raise ValueError(
            f"`vmax` must be positive. Received: vmax={checks.shown(vmax)}"
        )
    if title is not None:
        title = token_text(checks.string("title", title))
    check_color_map(cmap)
    if ax is None:
        grid, cell = _grid(figure_class, layers, title)
    elif len(layers) > 1:
        raise ValueError(
            f"`ax` can be given for one layer. Received: {len(layers)} layers"
        )
    else:
        grid, cell = _given(ax, layers[0].maps.shape)
    figure = grid[0][0].figure
    for number, (panels, layer) in enumerate(zip(grid, layers, strict=True)):
        for panel, weight, name in zip(
            panels, layer.maps, layer.names, strict=True
        ):
            image = panel.imshow(
                weight,
                cmap=cmap,
                vmin=0.0,
                vmax=vmax,
                interpolation="nearest",
            )
            panel.set_title(name, fontsize=10)
            _label(panel, layer.rows, layer.columns, cell)
            if ax is None and len(layers) == 1:
                panel.label_outer(remove_inner_ticks=True)
        if len(layers) > 1:
            above = layers[number - 1] if number else None
            _label_row(panels, layer, above)
    panels = [panel for panels in grid for panel in panels]
    if title is not None:
        figure.suptitle(title, fontfamily=label_fonts([title]))
    _color_bar(figure, panels, image)
    if ax is None:
        # Constrained layout measures titles only when drawing them
        # (as of Matplotlib 3.11.2); without this first pass the figure's title
        # overlaps those of the heads.
        figure.draw_without_rendering()
    return figure


def _figure_class():
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError(
            "`plot_attention` needs matplotlib: pip install keras-attn[explain]"
        ) from error
    return Figure


def check_color_map(cmap: str) -> None:
    """Raises ValueError if matplotlib has no such color map."""
    from matplotlib import colormaps, colors

    known = isinstance(cmap, str) and cmap in colormaps
    if not known and not isinstance(cmap, colors.Colormap):
        raise ValueError(
            "`cmap` must be a colormap of matplotlib. "
            f"Received: cmap={checks.shown(cmap)}"
        )


def _grid(figure_class, layers, title):
    """Returns the panels of a new figure, by layer, and inches per token."""
    shapes = [layer.maps.shape for layer in layers]
    if len(layers) == 1:
        count = shapes[0][0]
        high = -(-count // 4)
        wide = -(-count // high)
        row_lengths = [shapes[0][1]] * high
    else:
        count = wide = max(shape[0] for shape in shapes)
        high = len(layers)
        row_lengths = [shape[1] for shape in shapes]
    keys = max(shape[2] for shape in shapes)
    single = count == 1 and high == 1
    panel, readable, largest = _PANEL["single" if single else "grid"]
    longest = max(keys, *row_lengths)
    cell = np.clip(panel / longest, readable, _LARGEST_CELL)
    cell = max(min(cell, largest / longest), _SMALLEST_CELL)
    font = _font(cell)
    left, top = (
        max(_inches_of(labels, font) for labels in side)
        for side in (
            [layer.rows for layer in layers],
            [layer.columns for layer in layers],
        )
    )
    # Each layer may have its own keys, and is labeled with its name.
    tops = top * (1 if len(layers) == 1 else high)
    left += 0.25 * (len(layers) > 1)
    figure = figure_class(
        figsize=(
            left + wide * (keys * cell + 0.15) + 1.2,
            tops
            + sum(rows * cell + 0.4 for rows in row_lengths)
            + (title is not None) * 0.4,
        ),
        layout="constrained",
    )
    shared = len(layers) == 1
    panels = figure.subplots(
        high,
        wide,
        sharex=shared,
        sharey=shared,
        squeeze=False,
        height_ratios=None if shared else row_lengths,
    )
    if shared:
        for spare in panels.flat[count:]:
            spare.remove()
        return [list(panels.flat[:count])], cell
    for row, shape in zip(panels, shapes, strict=True):
        for spare in row[shape[0] :]:
            spare.remove()
    grid = zip(panels, shapes, strict=True)
    return [list(row[: shape[0]]) for row, shape in grid], cell


def _inches_of(labels, font):
    if labels is None:
        return 0.4
    return 0.62 * font / _POINTS_PER_INCH * len(max(labels or [""], key=len))


def _given(ax, shape):
    """Returns the caller's axes as a list and their inches per token."""
    panels = list(np.ravel(np.asarray(ax, dtype=object)))
    if not all(hasattr(panel, "imshow") for panel in panels):
        raise ValueError(
            "`ax` must be matplotlib axes. "
            f"Received: ax of type {type(ax).__name__}"
        )
    if len(panels) != shape[0]:
        raise ValueError(
            f"`ax` must be one for each of the {shape[0]} maps (choose one "
            f"map with `head`). Received: {len(panels)} axes"
        )
    box = panels[0].get_window_extent()
    inch = panels[0].figure.dpi
    return [panels], min(box.width / shape[2], box.height / shape[1]) / inch


def _font(cell):
    """Returns the font size, in points, that fits rows of `cell` inches."""
    return float(np.clip(0.72 * cell * _POINTS_PER_INCH, 5.0, 10.0))


def _label(panel, rows, columns, cell):
    """Labels keys at the top and queries at the left of the figure."""
    font = _font(cell)
    # If even the smallest font does not fit, only every n-th token is labeled.
    stride = int(np.ceil(font / (0.95 * cell * _POINTS_PER_INCH)))
    panel.tick_params(
        top=True, labeltop=True, bottom=False, labelbottom=False, labelsize=font
    )
    panel.xaxis.set_label_position("top")
    for axis, labels in ((panel.xaxis, columns), (panel.yaxis, rows)):
        if labels is None:
            axis.get_major_locator().set_params(integer=True)
            continue
        ticks = range(0, len(labels), stride)
        axis.set_ticks(ticks, [labels[tick] for tick in ticks])
        for tick in axis.get_major_ticks():
            # A token may contain dollar signs.
            for text in (tick.label1, tick.label2):
                text.set_parse_math(False)
                text.set_fontfamily(label_fonts(labels))
    if columns is not None:
        panel.tick_params(axis="x", labelrotation=90)
    panel.set_xlabel("key", color="dimgrey", fontsize=9)
    panel.set_ylabel("query", color="dimgrey", fontsize=9)


def _label_row(panels, layer, above):
    """Labels a layer, and its keys unless they are those of the layer above."""
    for number, panel in enumerate(panels):
        panel.set_xlabel("")
        panel.set_ylabel("" if number else layer.title, color="black")
        if number:
            panel.tick_params(labelleft=False)
        if above is not None and above.columns == layer.columns:
            panel.tick_params(labeltop=False)


def _color_bar(figure, panels, image):
    """Adds a color bar of constant width in inches."""
    if len(panels) == 1:
        space = panels[0].get_window_extent().width / figure.dpi
    else:
        space = figure.get_figwidth()
    figure.colorbar(
        image,
        ax=panels,
        label="attention weight",
        fraction=min(0.3, 0.3 / space),
        pad=min(0.1, 0.1 / space),
        aspect=18,
        shrink=0.9,
    )
