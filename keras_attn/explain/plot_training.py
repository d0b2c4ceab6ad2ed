"""plot_training: loss curves of a training."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from keras_attn import checks
from keras_attn.typing import TensorLike


def plot_training(
    losses: TensorLike,
    validation: Sequence[tuple[int, float]] = (),
    learning_rates: TensorLike | None = None,
    ylabel: str = "loss",
) -> Any:
    """Draws the loss curves of a training, and the learning rate.

    The training loss is averaged over a hundredth of the training, and
    drawn at the end of each window. The figure is independent of pyplot: save
    it with `figure.savefig(path)`.

    Args:
        losses: float (N,), N >= 1. Loss of each batch, such as
            `training.TrainingProgress.losses`.
        validation: list of (int, float): number of batches, validation loss.
            Default: none.
        learning_rates: float (N,). Drawn beside the losses. Default: not drawn.
        ylabel: str. Label of the losses, with their unit. Default "loss".

    Returns:
        The `matplotlib.figure.Figure`.

    Raises:
        ImportError: matplotlib is not installed.
        ValueError: an argument of another shape.

    Examples:
        >>> losses = [4.0, 3.0, 2.5, 2.2]
        >>> figure = plot_training(losses, [(2, 3.1), (4, 2.4)])
        >>> [line.get_label() for line in figure.axes[0].lines]
        ['training', 'validation']
    """
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError(
            "`plot_training` needs matplotlib: pip install keras-attn[explain]"
        ) from error
    losses = _curve("losses", losses)
    checks.string("ylabel", ylabel)
    panels = 1 if learning_rates is None else 2
    figure = Figure(figsize=(4.5 * panels, 3.2), layout="constrained")
    axes = figure.subplots(1, panels, squeeze=False)[0]
    window = max(1, len(losses) // 100)
    smooth = np.convolve(losses, np.ones(window) / window, "valid")
    axes[0].plot(np.arange(len(smooth)) + window, smooth, label="training")
    checks.instance("validation", validation, (list, tuple), "a list of pairs")
    if validation:
        pairs = checks.array("validation", validation)
        if np.shape(pairs)[1:] != (2,):
            raise ValueError(
                "`validation` must be a list of pairs (batches, loss). "
                f"Received: validation of shape {np.shape(pairs)}"
            )
        axes[0].plot(*np.transpose(pairs), "o-", ms=4, label="validation")
    axes[0].set(xlabel="batch", ylabel=ylabel)
    axes[0].legend()
    if learning_rates is not None:
        rates = _curve("learning_rates", learning_rates)
        if len(rates) != len(losses):
            raise ValueError(
                f"`learning_rates` must have one number for each of the "
                f"{len(losses)} losses. Received: {len(rates)}"
            )
        axes[1].plot(np.arange(1, len(rates) + 1), rates)
        axes[1].set(xlabel="batch", ylabel="learning rate")
    return figure


def _curve(name, values):
    values = np.asarray(checks.array(name, values))
    if values.ndim != 1 or not len(values) or values.dtype.kind not in "fiu":
        raise ValueError(
            f"`{name}` must be a list of at least one number. "
            f"Received: shape {values.shape}, dtype {values.dtype}"
        )
    return values.astype("float64")
