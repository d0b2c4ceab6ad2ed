"""Cross-entropy loss for padded sequences."""

from typing import TYPE_CHECKING, Any, Self

import keras
from keras import ops

from keras_attn import checks
from keras_attn.backend import divide_over_replicas
from keras_attn.training import token_loss
from keras_attn.typing import Tensor, TensorLike

if TYPE_CHECKING:
    from keras_attn.training.token_loss import OutputLayer, TokenScores


_REDUCTIONS = (
    "sum_over_batch_size",
    "mean",
    "mean_with_sample_weight",
    "sum",
    None,
    "none",
)


@keras.saving.register_keras_serializable(package="keras_attn")
class SequenceCrossentropy(keras.losses.Loss):
    """Cross-entropy per token with label smoothing, ignoring padding.

    Per token with label y and logits z over V classes, smoothing e:

        loss = -(1 - e) log p(y) - (e / V) sum_v log p(v),   p = softmax(z)

    the cross-entropy to (1 - e) one_hot(y) + e / V. The loss of a batch is the
    mean over all tokens whose label is not `pad_id`. Vaswani et al. 2017,
    sec. 5.4, https://arxiv.org/abs/1706.03762; smoothing after Szegedy et al.
    2016, sec. 7, https://arxiv.org/abs/1512.00567. With class weights w,

        loss = -(1 - e) w_y log p(y) - (e / V) sum_v w_v log p(v)

    and the mean is weighted: the sum is divided by the sum of w_y. It equals
    `torch.nn.CrossEntropyLoss(weight=w, label_smoothing=e,
    ignore_index=pad_id)`. The `class_weight` of `fit` is one weight per row and
    does not fit labels per token.

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
            "mean" (as in Keras): sum of loss times sample weight, divided by
            the number of tokens that are not padding, or with class weights by
            the sum of their w_y. "mean_with_sample_weight": divided by the sum
            of sample weight times w_y. "sum": the sum. None or "none": float32
            (B, T), 0 at padding.
        name: str.
        class_weight: weights of the classes, finite and at least 0: a dict of
            classes to weights, where a missing class has weight 1, or a list or
            an array of V weights. Default None: 1 for every class.

    Call arguments:
        y_true: int (B, T). Labels in [0, V), or `pad_id`. Any other label makes
            the loss NaN.
        y_pred: float (B, T, V). Logits (no softmax applied).
        sample_weight: float (B,) or (B, T). Factor on each token's loss.

    Returns:
        Float32 scalar, in nats per token.

    Raises:
        ValueError: `label_smoothing` outside [0, 1); `pad_id` not an int;
            class weights that are negative, not finite or do not fit V; labels
            that are not integers; shapes that do not agree.

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
        label_smoothing: float = 0.0,
        pad_id: int = 0,
        reduction: str = "sum_over_batch_size",
        name: str = "sequence_crossentropy",
        class_weight: Any = None,
    ) -> None:
        if name is not None:
            checks.string("name", name)
        checks.choice("reduction", reduction, _REDUCTIONS)
        super().__init__(name=name, reduction=reduction, dtype="float32")
        self.label_smoothing: float = checks.fraction(
            "label_smoothing", label_smoothing
        )
        self.pad_id: int = token_loss.check_pad_id(pad_id)
        self.class_weight: Any = token_loss.check_class_weight(class_weight)

    def __call__(
        self,
        y_true: TensorLike,
        y_pred: TensorLike,
        sample_weight: TensorLike | None = None,
    ) -> Any:
        """Returns the reduced loss; see the class docstring."""
        labels, logits = token_loss.read(y_true, y_pred)
        weights = token_loss.weights(labels, self.pad_id, sample_weight)
        losses = self.call(labels, logits)
        # A loss with weight 0 may be infinite or NaN.
        losses = ops.where(ops.equal(weights, 0), 0.0, losses * weights)
        if self.reduction in (None, "none"):
            return losses
        return self._reduced(
            ops.sum(losses), labels, weights, self._class_weights(logits)
        )

    def of_hidden_states(
        self,
        y_true: TensorLike,
        hidden: TensorLike,
        layer: "OutputLayer",
        sample_weight: TensorLike | None = None,
        training: bool = True,
    ) -> "tuple[Tensor, TokenScores]":
        """Returns the loss of an output layer, without all logits at once.

        The result is that of the loss of h E^T + b, and so is its gradient,
        which is computed together with it, for a few tokens at a time. There is
        no second derivative. Models call it in `fit` and `evaluate` if their
        vocabulary is large.

        Args:
            y_true: int (B, T). Labels.
            hidden: float (B, T, D). h.
            layer: `token_loss.OutputLayer` with E and b.
            sample_weight: float (B,) or (B, T).
            training: bool. Whether to compute the gradient. Default True.

        Returns:
            Float32 scalar, and `token_loss.TokenScores` for the metrics.

        Raises:
            ValueError: a loss without reduction, or what a call raises.
        """
        if self.reduction in (None, "none"):
            raise ValueError(
                "`reduction` must not be None for a loss of hidden states. "
                f"Received: reduction={self.reduction!r}"
            )
        labels, hidden = token_loss.read(y_true, hidden)
        weights = token_loss.weights(labels, self.pad_id, sample_weight)
        classes = token_loss.class_weights(self.class_weight, layer.size)
        total, scores = token_loss.linear_loss(
            labels,
            hidden,
            layer,
            ops.not_equal(labels, self.pad_id),
            weights,
            self.label_smoothing,
            classes,
            training,
        )
        return self._reduced(total, labels, weights, classes), scores

    def _reduced(self, total, labels, weights, class_weights):
        """Divides the sum of the losses by the number of tokens, or not."""
        if self.reduction == "sum":
            return divide_over_replicas(total)
        if self.reduction != "mean_with_sample_weight":
            weights = token_loss.weights(labels, self.pad_id)
        if class_weights is not None:
            # Padding has weight 0; any other label outside [0, V) gives NaN.
            most = ops.shape(class_weights)[0] - 1
            index = ops.clip(labels, 0, most)
            weights = weights * ops.take(class_weights, index)
        return divide_over_replicas(total, ops.sum(weights))

    def _class_weights(self, logits):
        return token_loss.class_weights(
            self.class_weight, logits.shape[-1], ops.shape(logits)[-1]
        )

    def call(self, y_true: TensorLike, y_pred: TensorLike) -> Tensor:
        """Returns the loss of each token, float32 (B, T), 0 at padding."""
        labels = ops.cast(y_true, "int32")
        visible = ops.not_equal(labels, self.pad_id)
        return token_loss.negative_log_likelihood(
            labels,
            y_pred,
            visible,
            self.label_smoothing,
            self._class_weights(y_pred),
        )

    def get_config(self) -> dict[str, Any]:
        """Returns the constructor's arguments."""
        return {
            "label_smoothing": self.label_smoothing,
            "pad_id": self.pad_id,
            "reduction": self.reduction,
            "name": self.name,
            "class_weight": self.class_weight,
        }

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Self:
        """Creates the loss; JSON files store the keys of a dict as str."""
        checks.instance("config", config, dict, "a dict")
        weights = config.get("class_weight")
        if isinstance(weights, dict):
            weights = {
                int(key) if isinstance(key, str) and key.isdigit() else key: w
                for key, w in weights.items()
            }
            config = {**config, "class_weight": weights}
        return cls(**config)
