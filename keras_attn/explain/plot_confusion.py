"""plot_confusion: the confusion matrix of a classifier."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from keras_attn import checks
from keras_attn.explain.label_fonts import label_fonts

# With more labels than this, the percentages would overlap.
_MOST_PRINTED = 30


def plot_confusion(
    references: Sequence[str], predictions: Sequence[str]
) -> Any:
    """Draws the confusion matrix of a classifier.

        C[i, j] = #(reference i and prediction j) / #(reference i)

    Rows and columns are all labels of both lists, sorted. The row of a label
    that is never a reference is empty. Percentages are printed for up to 30
    labels. The figure is independent of pyplot: save it with
    `figure.savefig(path)`.

    Args:
        references: list of str, N >= 1. The correct labels.
        predictions: list of str, N. The predicted labels.

    Returns:
        The `matplotlib.figure.Figure`.

    Raises:
        ImportError: matplotlib is not installed.
        ValueError: an argument is not a list of str, or their lengths differ.

    Examples:
        >>> figure = plot_confusion(["a", "a", "b"], ["a", "b", "b"])
        >>> [text.get_text() for text in figure.axes[0].texts]
        ['50%', '50%', '100%']
    """
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError(
            "`plot_confusion` needs matplotlib: pip install keras-attn[explain]"
        ) from error
    references = _labels("references", references)
    predictions = _labels("predictions", predictions)
    if not len(references) == len(predictions) > 0:
        raise ValueError(
            "`references` and `predictions` must have the same number of "
            "labels, at least one. "
            f"Received: {len(references)} and {len(predictions)}"
        )
    labels = sorted({*references, *predictions})
    numbers = {label: i for i, label in enumerate(labels)}
    counts = np.zeros((len(labels), len(labels)))
    for reference, prediction in zip(references, predictions, strict=True):
        counts[numbers[reference], numbers[prediction]] += 1
    rates = counts / np.maximum(1, counts.sum(1, keepdims=True))
    inches = min(24, 3 + 0.4 * len(labels))
    figure = Figure(figsize=(inches, inches), layout="constrained")
    axes = figure.subplots()
    axes.imshow(rates, "cividis", vmin=0, vmax=1)
    if len(labels) <= _MOST_PRINTED:
        for (row, column), rate in np.ndenumerate(rates):
            if rate:
                color = "black" if rate > 0.5 else "white"
                style = {"ha": "center", "va": "center", "color": color}
                axes.text(column, row, f"{rate:.0%}", style, fontsize=8)
    ticks, fonts = range(len(labels)), label_fonts(labels)
    axes.set_xticks(ticks, labels, rotation=90, fontfamily=fonts)
    axes.set_yticks(ticks, labels, fontfamily=fonts)
    axes.set(xlabel="prediction", ylabel="reference")
    return figure


def _labels(name, values):
    expected = "a list of str"
    values = list(checks.iterable(name, values, expected))
    for value in values:
        checks.instance(name, value, str, expected)
    return values
