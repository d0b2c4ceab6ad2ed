"""plot_logit_lens: the most likely token after each layer."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from keras_attn.explain.arguments import index, is_list, number_array
from keras_attn.explain.plot_layers import plot_layers, printable
from keras_attn.typing import TensorLike


def plot_logit_lens(
    logits: TensorLike,
    tokens: Sequence[Any] | None = None,
    names: Callable[[Any], Any] | None = None,
    row: int = 0,
    title: str | None = None,
    ax: Any = None,
    cmap: str = "cividis",
) -> Any:
    """Draws what each hidden state predicts.

    One row per layer, the embeddings at the bottom; one column per position. A
    cell has the most likely token, and its color is the probability of that
    token (nostalgebraist 2020). The figure is independent of pyplot: save it
    with `figure.savefig(path)`.

    Args:
        logits: float (L + 1, B, T, V), as from `logit_lens`.
        tokens: list of T str. Labels of the columns, the tokens that were read.
            Default: positions.
        names: callable that takes a list of ids and returns a list of their
            names, such as `SubwordTokenizer.pieces`. Default None: ids.
        row: int in [0, B).
        title: str, above the figure. Default: none.
        ax: `matplotlib.axes.Axes`. Default: a new figure.
        cmap: str, a matplotlib colormap. Default "cividis".

    Returns:
        The `matplotlib.figure.Figure`, that of `ax` if given.

    Raises:
        ImportError: matplotlib is not installed.
        ValueError: `logits` of another shape or not finite; a number of tokens
            or names that does not fit; or `row` out of range.

    Examples:
        >>> logits = np.log([[[[0.5, 0.25, 0.25]]], [[[0.1, 0.1, 0.8]]]])
        >>> figure = keras_attn.explain.plot_logit_lens(logits, ["the"])
        >>> [text.get_text() for text in figure.axes[0].texts]
        ['0', '2']
    """
    logits = number_array("logits", logits, "logits of shape (L + 1, B, T, V)")
    if logits.ndim != 4 or 0 in logits.shape:
        raise ValueError(
            "`logits` must have shape (L + 1, B, T, V). "
            f"Received: shape {logits.shape}"
        )
    if not np.isfinite(logits).all():
        raise ValueError("`logits` must be finite. Received: NaN or inf")
    if names is not None and not callable(names):
        raise ValueError(
            "`names` must be callable, or None. "
            f"Received: names of type {type(names).__name__}"
        )
    row = index("row", row, logits.shape[1], "the rows of the logits")
    logits = logits[:, row].astype("float64")
    best = logits.argmax(-1)
    largest = logits.max(-1)
    weights = np.exp(logits - largest[..., None]).sum(-1)
    return plot_layers(
        "plot_logit_lens",
        1 / weights,
        (0, 1),
        "probability",
        tokens,
        [_names(names, ids.tolist()) for ids in best],
        title,
        ax,
        cmap,
    )


def _names(names, ids):
    if names is None:
        return [str(i) for i in ids]
    found = names(ids)
    if not is_list(found) or len(found) != len(ids):
        raise ValueError(
            f"`names` must return a list of {len(ids)} names for as many ids. "
            f"Received: {type(found).__name__}"
        )
    return [printable(name) for name in found]
