"""The heat map of `plot_logit_lens` and `plot_patch`: layers by positions."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from keras_attn import checks
from keras_attn.explain.arguments import is_list
from keras_attn.explain.attention_map import token_text
from keras_attn.explain.label_fonts import label_fonts
from keras_attn.explain.plot_attention import check_color_map

_CELL = 0.32  # inches, the least width and the height of a cell
_FONT = 8  # points
_POINTS_PER_INCH = 72
_WIDTH_OF_CHARACTER = 0.62  # of the font size


def plot_layers(
    function: str,
    values: Any,
    bounds: tuple[float, float],
    label: str,
    tokens: Sequence[Any] | None,
    cells: Any,
    title: str | None,
    ax: Any,
    cmap: Any,
) -> Any:
    """Draws a value for each layer and position, the embeddings at the bottom.

    Args:
        function: str. The caller's name, for error messages.
        values: float (L + 1, T).
        bounds: the values at the ends of the color scale.
        label: str, of the color bar.
        tokens: list of T labels, or None: the positions.
        cells: list of L + 1 lists of T str, written into the cells, or None.
        title: str, or None.
        ax: matplotlib axes, or None: a new figure.
        cmap: a matplotlib colormap.

    Returns:
        The `matplotlib.figure.Figure`.

    Raises:
        ImportError: matplotlib is not installed.
        ValueError: tokens, a title, axes or a colormap that are none.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError(
            f"`{function}` needs matplotlib: pip install keras-attn[explain]"
        ) from error
    layers, length = values.shape
    if tokens is not None:
        tokens = _labels(tokens, length)
    if title is not None:
        title = token_text(checks.string("title", title))
    check_color_map(cmap)
    if ax is None:
        longest = max(len(text) for row in cells or [[""]] for text in row)
        characters = _FONT * _WIDTH_OF_CHARACTER / _POINTS_PER_INCH
        width = max(_CELL, (longest + 1.5) * characters)
        below = 0.4 + characters * max(map(len, tokens or [""]))
        figure = Figure(
            figsize=(
                max(4.0, length * width + 2.2),
                layers * _CELL + below + 0.4 * (title is not None),
            ),
            layout="constrained",
        )
        ax = figure.subplots()
    elif not hasattr(ax, "imshow"):
        raise ValueError(
            "`ax` must be matplotlib axes. "
            f"Received: ax of type {type(ax).__name__}"
        )
    image = ax.imshow(
        values,
        cmap=cmap,
        vmin=bounds[0],
        vmax=bounds[1],
        aspect="auto",
        origin="lower",
        interpolation="nearest",
    )
    blocks = [f"block {i}" for i in range(layers - 1)]
    ax.set_yticks(range(layers), ["embeddings", *blocks], fontsize=_FONT)
    if tokens is None:
        ax.set_xlabel("position", fontsize=_FONT)
        ax.xaxis.get_major_locator().set_params(integer=True)
    else:
        ax.set_xticks(
            range(length),
            tokens,
            rotation=90,
            fontsize=_FONT,
            fontfamily=label_fonts(tokens),
            # A token may contain dollar signs.
            parse_math=False,
        )
    if cells is not None:
        _write(ax, image, values, cells)
    if title is not None:
        ax.set_title(title, fontfamily=label_fonts([title]), parse_math=False)
    ax.figure.colorbar(image, ax=ax, label=label, aspect=12)
    return ax.figure


def _labels(tokens, length):
    if not is_list(tokens) or len(tokens) != length:
        received = f"{len(tokens)} tokens" if is_list(tokens) else tokens
        raise ValueError(
            f"`tokens` must be a list with a label for each of {length} "
            f"positions. Received: {checks.shown(received)}"
        )
    return [printable(token) for token in tokens]


def printable(token: Any) -> str:
    """Returns a token as text without line breaks and control characters."""
    return "".join(
        c if c.isprintable() else repr(c)[1:-1] for c in token_text(token)
    )


def _write(ax, image, values, cells):
    """Writes into the cells, dark on light colors and light on dark ones."""
    fonts = label_fonts(text for row in cells for text in row)
    for (layer, position), value in np.ndenumerate(values):
        red, green, blue, _ = image.to_rgba(value)
        light = 0.3 * red + 0.59 * green + 0.11 * blue > 0.5
        ax.text(
            position,
            layer,
            cells[layer][position],
            ha="center",
            va="center",
            color="black" if light else "white",
            fontsize=_FONT,
            fontfamily=fonts,
            parse_math=False,
        )
