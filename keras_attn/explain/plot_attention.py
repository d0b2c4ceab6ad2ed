"""plot_attention: attention weights as a heat map, or one per head."""

import keras
import numpy as np

# Inches per token, at least and at most.
_SMALLEST_CELL, _LARGEST_CELL = 0.02, 0.5
# Inches of a map's longer side, inches per token that labels need, and inches
# at most: short sentences fill the first, the next lets 60 tokens be read.
_PANEL = {"single": (3.6, 0.24, 16.0), "grid": (2.2, 0.125, 9.0)}
_POINTS_PER_INCH = 72


def plot_attention(
    weights,
    query_tokens=None,
    key_tokens=None,
    head=None,
    title=None,
    axes=None,
    colormap="Blues",
    maximum=None,
):
    """Draws which keys each query attends to.

    One row per query, from the top; one column per key. All maps of a figure
    share one colour scale, from 0 to `maximum`. The figure belongs to no
    display and no global state: save it with `figure.savefig(path)`.

    Args:
        weights: float (T, S), (N, T, S) or (1, N, T, S), array or tensor.
            Attention weights, none of them negative, of N heads.
        query_tokens: list of T str. Labels of the rows. Default: positions.
        key_tokens: list of S str. Labels of the columns. Default: positions.
        head: int in [0, N). The one head to draw. Default None: all heads, in
            a grid.
        title: str, above the figure. Default: none.
        axes: `matplotlib.axes.Axes` to draw a single map into, or a list or
            array of N of them. Default: a new figure, large enough to read
            the labels.
        colormap: str, a name that matplotlib knows. Default "Blues".
        maximum: float > 0. Weight of the darkest colour. Default: the largest
            weight drawn.

    Returns:
        The `matplotlib.figure.Figure`, that of `axes` where these are given.

    Raises:
        ImportError: matplotlib is not installed.
        ValueError: `weights` of another shape, negative or not finite; a
            number of tokens or axes that does not fit; `head` out of range;
            `maximum` not positive.

    Examples:
        >>> import numpy as np
        >>> weights = np.tril(np.ones((2, 3, 3))) / [[1], [2], [3]]
        >>> tokens = ["the", "cat", "sat"]
        >>> figure = plot_attention(weights, tokens, tokens, title="Causal")
        >>> [axes.get_title() for axes in figure.axes[:2]]
        ['head 0', 'head 1']
    """
    figure_class = _figure_class()
    maps, names = _maps(weights, head)
    rows = _labels("query_tokens", query_tokens, maps.shape[1])
    columns = _labels("key_tokens", key_tokens, maps.shape[2])
    if maximum is None:
        maximum = float(maps.max()) or 1.0
    elif not maximum > 0:
        raise ValueError(
            f"`maximum` must be positive. Received: maximum={maximum!r}"
        )
    if axes is None:
        panels, cell = _grid(figure_class, maps.shape, rows, columns, title)
    else:
        panels, cell = _given(axes, maps.shape)
    figure = panels[0].figure
    for panel, weight, name in zip(panels, maps, names, strict=True):
        image = panel.imshow(
            weight,
            cmap=colormap,
            vmin=0.0,
            vmax=maximum,
            interpolation="nearest",
        )
        panel.set_title(name, fontsize=10)
        _label(panel, rows, columns, cell)
        if axes is None:
            panel.label_outer(remove_inner_ticks=True)
    if title is not None:
        figure.suptitle(title)
    _colour_bar(figure, panels, image)
    if axes is None:
        # The layout learns where titles stand only as it draws them; without
        # this first pass the figure's title lies on those of the heads.
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


def _maps(weights, head):
    """Returns the maps to draw, float (n, T, S), and their names."""
    array = keras.ops.convert_to_numpy(weights)
    shape = array.shape
    if len(shape) == 4 and shape[0] == 1:
        array = array[0]
    elif len(shape) == 2:
        array = array[None]
    if array.ndim != 3 or 0 in array.shape:
        raise ValueError(
            "`weights` must be of shape (T, S), (N, T, S) or (1, N, T, S). "
            f"Received: weights of shape {shape}"
        )
    array = array.astype("float32")
    if not np.all(np.isfinite(array)) or array.min() < 0:
        raise ValueError(
            "`weights` must be finite and none of them negative (weights come "
            "after the softmax, scores before it). Received: values from "
            f"{array.min()} to {array.max()}"
        )
    count = len(array)
    if head is None:
        names = [f"head {i}" for i in range(count)] if count > 1 else [""]
        return array, names
    if isinstance(head, bool) or not isinstance(head, int):
        raise ValueError(f"`head` must be an int. Received: head={head!r}")
    if not 0 <= head < count:
        raise ValueError(
            f"`head` must lie in [0, {count}), the heads of `weights`. "
            f"Received: head={head}"
        )
    return array[head : head + 1], [f"head {head}"]


def _labels(name, tokens, count):
    """Returns printable labels, or None where there are no tokens."""
    if tokens is None:
        return None
    if isinstance(tokens, (str, bytes)):
        raise ValueError(
            f"`{name}` must be a list of tokens. Received: {name}={tokens!r}"
        )
    tokens = [
        token.decode("utf-8", "replace") if isinstance(token, bytes) else token
        for token in tokens
    ]
    if len(tokens) != count:
        raise ValueError(
            f"`{name}` must name the {count} positions of `weights`. "
            f"Received: {len(tokens)} tokens"
        )
    # A line break in a label would tear the layout apart.
    return [
        "".join(c if c.isprintable() else repr(c)[1:-1] for c in str(token))
        for token in tokens
    ]


def _grid(figure_class, shape, rows, columns, title):
    """Returns the panels of a new figure and the inches per token."""
    count, queries, keys = shape
    high = -(-count // 4)
    wide = -(-count // high)
    panel, readable, largest = _PANEL["single" if count == 1 else "grid"]
    longest = max(queries, keys)
    cell = np.clip(panel / longest, readable, _LARGEST_CELL)
    cell = max(min(cell, largest / longest), _SMALLEST_CELL)
    font = _font(cell)
    left, top = (
        0.4 if labels is None else 0.62 * font / _POINTS_PER_INCH * len(longest)
        for labels in (rows, columns)
        for longest in [max(labels or [""], key=len)]
    )
    figure = figure_class(
        figsize=(
            left + wide * (keys * cell + 0.15) + 1.2,
            top + high * (queries * cell + 0.4) + (title is not None) * 0.4,
        ),
        layout="constrained",
    )
    panels = figure.subplots(
        high, wide, sharex=True, sharey=True, squeeze=False
    )
    for spare in panels.flat[count:]:
        spare.remove()
    return list(panels.flat[:count]), cell


def _given(axes, shape):
    """Returns the caller's axes as a list and their inches per token."""
    panels = list(np.ravel(axes))
    if len(panels) != shape[0]:
        raise ValueError(
            f"`axes` must be one for each of the {shape[0]} maps (choose one "
            f"map with `head`). Received: {len(panels)} axes"
        )
    box = panels[0].get_window_extent()
    inch = panels[0].figure.dpi
    return panels, min(box.width / shape[2], box.height / shape[1]) / inch


def _font(cell):
    """Returns the font size, in points, that fits rows of `cell` inches."""
    return float(np.clip(0.72 * cell * _POINTS_PER_INCH, 5.0, 10.0))


def _label(panel, rows, columns, cell):
    """Puts keys at the top and queries at the left of the figure."""
    font = _font(cell)
    # Where even the smallest font does not fit, every n-th token is named.
    stride = int(np.ceil(font / (0.95 * cell * _POINTS_PER_INCH)))
    panel.tick_params(
        top=True, labeltop=True, bottom=False, labelbottom=False, labelsize=font
    )
    panel.xaxis.set_label_position("top")
    for axis, labels in ((panel.xaxis, columns), (panel.yaxis, rows)):
        if labels is None:
            axis.get_major_locator().set_params(integer=True)
            continue
        places = range(0, len(labels), stride)
        axis.set_ticks(places, [labels[place] for place in places])
        for tick in axis.get_major_ticks():
            # A token may hold dollar signs.
            tick.label1.set_parse_math(False)
            tick.label2.set_parse_math(False)
    if columns is not None:
        panel.tick_params(axis="x", labelrotation=90)
    panel.set_xlabel("key", color="dimgrey", fontsize=9)
    panel.set_ylabel("query", color="dimgrey", fontsize=9)


def _colour_bar(figure, panels, image):
    """Adds a bar of the same width, in inches, to a figure of any size."""
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
