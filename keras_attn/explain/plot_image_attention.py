"""plot_image_attention: where each word attends in an image."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from keras_attn.explain.arguments import is_list, number_array
from keras_attn.explain.attention_map import token_text
from keras_attn.explain.label_fonts import label_fonts
from keras_attn.typing import TensorLike

_AREA = 2.0  # square inches of a panel
_DARKEST = 0.2  # brightness without attention


def plot_image_attention(
    images: TensorLike, weights: TensorLike, tokens: Sequence[Any]
) -> Any:
    """Draws where in an image a captioning model attends for each token.

    One row per image: the image, then one panel per token, in which brightness
    shows the attention weight of each cell of the grid, relative to the largest
    weight of the token (Xu et al. 2015, fig. 2,
    https://arxiv.org/abs/1502.03044). The figure is independent of pyplot: save
    it with `figure.savefig(path)`.

    Args:
        images: (B, H, W, 3), integers or floats in [0, 255]. RGB.
        weights: float (B, T, rows, columns), not negative. Those of
            `models.ImageCaptioner.generate` have the shape (B, t, 1, 1, T, S):
            reshape them with `grid_size` of the model.
        tokens: list of B lists of at most T str, the titles of the panels.

    Returns:
        The `matplotlib.figure.Figure`.

    Raises:
        ImportError: matplotlib is not installed.
        ValueError: an argument of another shape, weights that are negative or
            not finite, or values outside [0, 255].

    Examples:
        >>> import numpy as np
        >>> images = np.full((1, 40, 60, 3), 255, "uint8")
        >>> weights = np.full((1, 2, 10, 15), 1 / 150)
        >>> figure = plot_image_attention(images, weights, [["white", "image"]])
        >>> [panel.get_title() for panel in figure.axes]
        ['', 'white', 'image']
    """
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError(
            "`plot_image_attention` needs matplotlib: "
            "pip install keras-attn[explain]"
        ) from error
    images, weights = _check_images(images), _check_weights(weights)
    tokens = _check_tokens(tokens, *weights.shape[:2])
    if len(images) != len(weights):
        raise ValueError(
            "`images` and `weights` must have the same number of rows. "
            f"Received: {len(images)} and {len(weights)}"
        )
    height, width = images.shape[1:3]
    ratio = np.clip(width / height, 1 / 8, 8) ** 0.5
    rows, columns = len(images), 1 + max(map(len, tokens))
    size = _AREA**0.5 * ratio * columns, (_AREA**0.5 / ratio + 0.25) * rows
    figure = Figure(figsize=size, layout="constrained")
    panels = figure.subplots(rows, columns, squeeze=False)
    # The cell of each pixel.
    cells = np.ix_(
        np.arange(height) * weights.shape[2] // height,
        np.arange(width) * weights.shape[3] // width,
    )
    for row, image in enumerate(images):
        panels[row, 0].imshow(image)
        for panel in panels[row, 1 + len(tokens[row]) :]:
            panel.remove()
        for token, panel, weight in zip(
            tokens[row], panels[row, 1:], weights[row], strict=False
        ):
            weight = weight / (weight.max() or 1)
            brightness = _DARKEST + (1 - _DARKEST) * weight[cells]
            panel.imshow(image * brightness[..., None])
            fonts = label_fonts([token])
            title = panel.set_title(token, fontsize=9, fontfamily=fonts)
            # A token may contain dollar signs.
            title.set_parse_math(False)
    for panel in figure.axes:
        panel.set_axis_off()
    return figure


def _check_images(images):
    """Returns float (B, H, W, 3) in [0, 1], or raises ValueError."""
    images = number_array("images", images)
    if images.ndim != 4 or images.shape[3] != 3 or 0 in images.shape:
        raise ValueError(
            "`images` must have shape (B, H, W, 3). "
            f"Received: images of shape {images.shape}"
        )
    images = images.astype("float32")
    # Also false for NaN.
    if not (images.min() >= 0 and images.max() <= 255):
        raise ValueError(
            "`images` must have values in [0, 255]. Received: values from "
            f"{images.min()} to {images.max()}"
        )
    return images / 255


def _check_weights(weights):
    """Returns float (B, T, rows, columns), or raises ValueError."""
    weights = number_array("weights", weights)
    if weights.ndim != 4 or 0 in weights.shape:
        raise ValueError(
            "`weights` must have shape (B, T, rows, columns). "
            f"Received: weights of shape {weights.shape}"
        )
    weights = weights.astype("float32")
    if not (weights.min() >= 0 and np.isfinite(weights.max())):
        raise ValueError(
            "`weights` must be finite and not negative. Received: values from "
            f"{weights.min()} to {weights.max()}"
        )
    return weights


def _check_tokens(tokens, rows, length):
    """Returns `rows` lists of at most `length` str, or raises ValueError."""
    if not is_list(tokens) or not all(map(is_list, tokens)):
        raise ValueError(
            "`tokens` must be a list of lists of str. "
            f"Received: tokens of type {type(tokens).__name__}"
        )
    lengths = [len(row) for row in tokens]
    if len(lengths) != rows or max(lengths) > length:
        raise ValueError(
            f"`tokens` must have {rows} lists of at most {length} tokens, as "
            f"`weights`. Received: lengths {lengths}"
        )
    return [[token_text(token) for token in row] for row in tokens]
