"""Cross-entropy loss for padded sequences."""

import keras
from keras import ops

from keras_attn import checks
from keras_attn.training import token_loss


@keras.saving.register_keras_serializable(package="keras_attn")
class SequenceCrossentropy(keras.losses.Loss):
    """Cross-entropy per token with label smoothing, ignoring padding.

    Per token with label y and logits z over V classes, smoothing e:

        loss = -(1 - e) log p(y) - (e / V) sum_v log p(v),   p = softmax(z)

    the cross-entropy to (1 - e) one_hot(y) + e / V. The loss of a batch is the
    mean over all tokens whose label is not `pad_id`. Vaswani et al. 2017,
    sec. 5.4, https://arxiv.org/abs/1706.03762; smoothing after Szegedy et al.
    2016, sec. 7, https://arxiv.org/abs/1512.00567. It equals
    `torch.nn.CrossEntropyLoss(label_smoothing=e, ignore_index=pad_id)`.

    Padding has no influence: neither the loss nor its gradient depends on the
    logits at padding positions, even if these are NaN, and their gradient is
    exactly zero. The loss of a fully padded batch is 0. Padding is defined by
    the labels only; a Keras mask on `y_pred` is ignored (it describes the
    decoder's inputs, in which a start token may equal the pad id).

    Softmax and sums are computed in float32 for logits of any dtype. One-hot or
    smoothed labels (B, T, V) are never materialized.

    Args:
        label_smoothing: float in [0, 1). e. Default 0.0; the paper uses 0.1.
        pad_id: int. Label of padding positions, any int, such as -100. Default
            0.
        reduction: reduction of the token losses. "sum_over_batch_size" or
            "mean" (as in Keras): sum of loss times weight, divided by the
            number of tokens that are not padding. "mean_with_sample_weight":
            divided by the sum of their weights. "sum": the sum. None or "none":
            float32 (B, T), 0 at padding.
        name: str.

    Call arguments:
        y_true: int (B, T). Labels in [0, V), or `pad_id`. Any other label makes
            the loss NaN.
        y_pred: float (B, T, V). Logits (no softmax applied).
        sample_weight: float (B,) or (B, T). Factor on each token's loss.

    Returns:
        Float32 scalar, in nats per token.

    Raises:
        ValueError: `label_smoothing` outside [0, 1); `pad_id` not an int;
            labels that are not integers; shapes that do not agree.

    Examples:
        >>> import numpy as np
        >>> logits = np.log([[[0.1, 0.6, 0.3], [0.5, 0.2, 0.3]]])
        >>> loss = SequenceCrossentropy()
        >>> float(loss(np.array([[1, 0]]), logits))  # -log 0.6; 0 is padding
        0.5108...
        >>> model = keras.Sequential([keras.layers.Embedding(9, 9)])
        >>> model.compile(loss=SequenceCrossentropy(label_smoothing=0.1))
    """

    def __init__(
        self,
        label_smoothing=0.0,
        pad_id=0,
        reduction="sum_over_batch_size",
        name="sequence_crossentropy",
    ):
        super().__init__(name=name, reduction=reduction, dtype="float32")
        self.label_smoothing = checks.fraction(
            "label_smoothing", label_smoothing
        )
        self.pad_id = token_loss.check_pad_id(pad_id)

    def __call__(self, y_true, y_pred, sample_weight=None):
        """Returns the reduced loss; see the class docstring."""
        labels, logits = token_loss.read(y_true, y_pred)
        weights = token_loss.weights(labels, self.pad_id, sample_weight)
        losses = self.call(labels, logits)
        if self.reduction in (None, "none"):
            return losses * weights
        # A loss with weight 0 may be infinite or NaN.
        losses = ops.where(ops.equal(weights, 0), 0.0, losses * weights)
        total = ops.sum(losses)
        if self.reduction == "sum":
            return total
        if self.reduction == "mean_with_sample_weight":
            return ops.divide_no_nan(total, ops.sum(weights))
        count = ops.sum(ops.cast(ops.not_equal(labels, self.pad_id), "float32"))
        return ops.divide_no_nan(total, count)

    def call(self, y_true, y_pred):
        """Returns the loss of each token, float32 (B, T), 0 at padding."""
        labels = ops.cast(y_true, "int32")
        visible = ops.not_equal(labels, self.pad_id)
        return token_loss.negative_log_likelihood(
            labels, y_pred, visible, self.label_smoothing
        )

    def get_config(self):
        """Returns the constructor's arguments."""
        return {
            "label_smoothing": self.label_smoothing,
            "pad_id": self.pad_id,
            "reduction": self.reduction,
            "name": self.name,
        }
