"""Token accuracy."""

from typing import TYPE_CHECKING, Any

import keras
from keras import ops

from keras_attn.training import token_loss
from keras_attn.typing import Tensor, TensorLike

if TYPE_CHECKING:
    from keras_attn.training.token_loss import TokenScores


@keras.saving.register_keras_serializable(package="keras_attn")
class TokenAccuracy(keras.metrics.Metric):
    """Fraction of tokens whose argmax is the label, ignoring padding.

        accuracy = sum_i w_i [argmax_v z_iv = y_i] / sum_i w_i

    over all tokens i since the last reset whose label is not `pad_id`, with
    weights w (default 1). Totals are accumulated, not batch means, so batches
    with more tokens count more. Before the first token it is 0.

    Args:
        pad_id: int. Label of padding positions. Default 0.
        name: str.
        dtype: dtype of the totals. Default `keras.config.floatx()`.

    Call arguments:
        y_true: int (B, T). Labels.
        y_pred: float (B, T, V). Logits or probabilities.
        sample_weight: float (B,) or (B, T). w. Keras passes it to metrics in
            `weighted_metrics` of `compile` only.

    Returns:
        Float scalar in [0, 1].

    Raises:
        ValueError: `pad_id` is not an int; labels that are not integers;
            shapes that do not agree.

    Examples:
        >>> import numpy as np
        >>> metric = TokenAccuracy()
        >>> logits = np.array([[[0, 2, 1], [0, 2, 1], [0, 2, 1]]], "float32")
        >>> float(metric(np.array([[1, 2, 0]]), logits))  # 1 of 2, 1 padding
        0.5
    """

    def __init__(
        self,
        pad_id: int = 0,
        name: str = "token_accuracy",
        dtype: str | None = None,
    ) -> None:
        token_loss.check_metric(name, dtype)
        super().__init__(name=name, dtype=dtype)
        self.pad_id: int = token_loss.check_pad_id(pad_id)
        self.correct: keras.Variable = self.add_variable(
            (), "zeros", name="correct"
        )
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
        hits = ops.equal(ops.cast(ops.argmax(logits, -1), "int32"), labels)
        self._add(labels, hits, sample_weight)

    def update_from_scores(
        self, scores: "TokenScores", sample_weight: TensorLike | None = None
    ) -> None:
        """Adds a batch whose best tokens the loss has found.

        Args:
            scores: `token_loss.TokenScores`.
            sample_weight: float (B,) or (B, T).
        """
        self._add(scores.labels, scores.hits, sample_weight)

    def _add(self, labels, hits, sample_weight):
        weights = token_loss.weights(labels, self.pad_id, sample_weight)
        correct = ops.sum(ops.where(hits, weights, 0.0))
        self.correct.assign_add(ops.cast(correct, self.dtype))
        self.total.assign_add(ops.cast(ops.sum(weights), self.dtype))

    def result(self) -> Tensor:
        """Returns the accuracy over everything since the last reset."""
        return ops.divide_no_nan(self.correct, self.total)

    def get_config(self) -> dict[str, Any]:
        """Returns the constructor's arguments."""
        return {**super().get_config(), "pad_id": self.pad_id}
