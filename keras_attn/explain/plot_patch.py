"""plot_patch: what each patch restores."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from keras_attn import checks
from keras_attn.explain.arguments import number_array
from keras_attn.explain.patch import PatchScores
from keras_attn.explain.plot_layers import plot_layers


def plot_patch(
    patched: PatchScores,
    tokens: Sequence[Any] | None = None,
    title: str | None = None,
    ax: Any = None,
    cmap: str = "PuOr",
) -> Any:
    """Draws how much of the clean score each patch restores.

    One row per layer, the embeddings at the bottom; one column per position. At
    0 a patch has no effect, at 1 it restores the score of the clean inputs;
    below 0 it does the opposite. The figure is independent of pyplot: save it
    with `figure.savefig(path)`.

    Args:
        patched: `PatchScores`, from `patch`.
        tokens: list of T str. Labels of the columns. Default: positions.
        title: str, above the figure. Default: none.
        ax: `matplotlib.axes.Axes`. Default: a new figure.
        cmap: str, a diverging matplotlib colormap. Default "PuOr".

    Returns:
        The `matplotlib.figure.Figure`, that of `ax` if given.

    Raises:
        ImportError: matplotlib is not installed.
        ValueError: `patched` is no `PatchScores`, or has no finite scores of
            shape (L + 1, T) or the same score for both inputs; or a number of
            tokens that does not fit.

    Examples:
        >>> patched = keras_attn.explain.PatchScores(np.eye(3), 1.0, 0.0)
        >>> figure = keras_attn.explain.plot_patch(patched, ["a", "b", "c"])
        >>> [label.get_text() for label in figure.axes[0].get_yticklabels()]
        ['embeddings', 'block 0', 'block 1']
    """
    checks.instance("patched", patched, PatchScores, "a `PatchScores`")
    expected = "finite numbers of shape (L + 1, T)"
    scores = number_array("scores", patched.scores, expected)
    if scores.ndim != 2 or 0 in scores.shape or not np.isfinite(scores).all():
        raise ValueError(
            f"`scores` must be {expected}. Received: shape {scores.shape}"
        )
    restored = PatchScores(
        scores,
        checks.real("clean", patched.clean),
        checks.real("corrupted", patched.corrupted),
    ).restored
    largest = max(1.0, np.abs(restored).max())
    return plot_layers(
        "plot_patch",
        restored,
        (-largest, largest),
        "restored score",
        tokens,
        None,
        title,
        ax,
        cmap,
    )
