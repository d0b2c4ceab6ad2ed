"""Perplexity of language models."""

from typing import TYPE_CHECKING, Any

import keras
from keras import ops

from keras_attn.training import token_loss
from keras_attn.typing import Tensor, TensorLike

if TYPE_CHECKING:
    from keras_attn.training.token_loss import TokenScores


@keras.saving.register_keras_serializable(package="keras_attn")
class Perplexity(keras.metrics.Metric):
    """Perplexity per token, ignoring padding.

        perplexity = exp(-sum_i w_i log p_i(y_i) / sum_i w_i)
        p_i = softmax(logits_i)

    over all tokens i since the last reset whose label is not `pad_id`, with
    weights w (default 1). Totals are accumulated, not batch means, and labels
    are never smoothed, whatever the loss does: exp of a smoothed loss is not a
    perplexity. Log-probabilities are computed in float32. Before the first
    token it is 1. A label outside [0, V) that is not `pad_id` makes it NaN.

    Args:
        pad_id: int. Label of padding positions. Default 0.
        name: str.
        dtype: dtype of the totals. Default `keras.config.floatx()`.

    Call arguments:
        y_true: int (B, T). Labels.
        y_pred: float (B, T, V). Logits (no softmax applied).
        sample_weight: float (B,) or (B, T). w. Keras passes it to metrics in
            `weighted_metrics` of `compile` only.

    Returns:
        Float scalar, at least 1.

    Raises:
        ValueError: `pad_id` is not an int; labels that are not integers;
            shapes that do not agree.

    Examples:
        >>> import numpy as np
        >>> metric = Perplexity()
        >>> logits = np.zeros((1, 3, 8), "float32")  # all eight equally likely
        >>> round(float(metric(np.array([[5, 2, 0]]), logits)), 4)
        8.0
    """

    def __init__(
        self,
        pad_id: int = 0,
        name: str = "perplexity",
        dtype: str | None = None,
    ) -> None:
        token_loss.check_metric(name, dtype)
        super().__init__(name=name, dtype=dtype)
        self.pad_id: int = token_loss.check_pad_id(pad_id)
        self.nats: keras.Variable = self.add_variable((), "zeros", name="nats")
        self.total: keras.Variable = self.add_variable(
            (), "zeros", name="total"
        )

    def update_state(
        self,
        y_true: TensorLike,
        y_pred: TensorLike,
        sample_weight: TensorLike | None = None,
    ) -> None:
        """Adds a batch to the totals."""
        labels, logits = token_loss.read(y_true, y_pred)
        visible = ops.not_equal(labels, self.pad_id)
        nats = token_loss.negative_log_likelihood(labels, logits, visible)
        self._add(labels, nats, sample_weight)

    def update_from_scores(
        self, scores: "TokenScores", sample_weight: TensorLike | None = None
    ) -> None:
        """Adds a batch whose log-probabilities the loss has computed.

        Args:
            scores: `token_loss.TokenScores`.
            sample_weight: float (B,) or (B, T).
        """
        self._add(scores.labels, scores.nats, sample_weight)

    def _add(self, labels, nats, sample_weight):
        weights = token_loss.weights(labels, self.pad_id, sample_weight)
        # A loss with weight 0 may be infinite; 0 * inf is NaN.
        nats = ops.where(ops.equal(weights, 0), 0.0, nats * weights)
        self.nats.assign_add(ops.cast(ops.sum(nats), self.dtype))
        self.total.assign_add(ops.cast(ops.sum(weights), self.dtype))

    def result(self) -> Tensor:
        """Returns the perplexity of everything since the last reset."""
        return ops.exp(ops.divide_no_nan(self.nats, self.total))

    def get_config(self) -> dict[str, Any]:
        """Returns the constructor's arguments."""
        return {**super().get_config(), "pad_id": self.pad_id}
