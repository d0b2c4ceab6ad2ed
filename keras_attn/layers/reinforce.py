"""REINFORCE loss for sampled choices."""

import math
from typing import TYPE_CHECKING, Any

import keras
from keras import ops

from keras_attn import checks
from keras_attn.backend import TorchNames
from keras_attn.layers.checked_call import CheckedCall
from keras_attn.ops.visibility import implicit_mask
from keras_attn.typing import Shape, Tensor, TensorLike


@keras.saving.register_keras_serializable(package="keras_attn")
class Reinforce(CheckedCall, TorchNames, keras.layers.Layer):
    """Adds a REINFORCE loss for sampled choices without a gradient.

    With the loss l_i of example i and the log-probability log p_i of all
    choices made for it, the layer adds to the loss of the model

        1/B sum_i stop_gradient(l_i - b) log p_i

    In expectation over the choices, its gradient is the part that the gradient
    of the loss itself misses (Williams 1992,
    https://doi.org/10.1007/BF00992696). The baseline b reduces the variance
    without changing the expectation:

        b <- momentum b + (1 - momentum) 1/B sum_i l_i

    This is the method of Xu et al. 2015, sec. 4.1,
    https://arxiv.org/abs/1502.03044, with reward -l_i and without their entropy
    term.

    A layer with `hard="reinforce"` does not know the loss that results from its
    choice. So make this layer, which returns the prediction unchanged, the last
    one of the training model, which takes the targets as an input. Pass the
    same loss to `compile`. The model for inference shares the other layers
    and needs neither this layer nor the targets. The loss reported by `fit`
    includes the term above, that of `evaluate` does not.

    Args:
        loss: name, function or `keras.losses.Loss`. Its losses are averaged
            per example.
        momentum: float in [0, 1). Momentum of the baseline; 0: the loss of the
            previous batch. Default 0.9, as in Xu et al.
        **kwargs: arguments of `keras.layers.Layer`: `name`, `dtype`, ...

    Call arguments:
        prediction: float (B, ...), output of the model. Losses masked by its
            implicit Keras mask are ignored.
        target: (B, ...).
        log_probability: float (B, ...), from `ScoredAttention`; summed per
            example. For several layers, pass the sum.
        sample_weight: float (B,), or of the shape of the losses. Weight of
            each loss, 0 for padding.
        training: bool. Whether to add the loss and update the baseline.

    Returns:
        `prediction`, unchanged.

    Raises:
        ValueError: `momentum` is out of range, the batch sizes differ, or the
            loss has no batch axis.

    Examples:
        >>> memory = keras.Input((4, 3))
        >>> query = keras.Input((1, 3))
        >>> target = keras.Input((1, 3))
        >>> look = keras_attn.layers.ScoredAttention(
        ...     "general", hard="reinforce")
        >>> seen, log_probability = look(
        ...     query, memory, return_log_probability=True)
        >>> prediction = keras.layers.Dense(3)(seen)
        >>> learned = keras_attn.layers.Reinforce("mse")(
        ...     prediction, target, log_probability)
        >>> learner = keras.Model([query, memory, target], learned)
        >>> learner.compile("adam", "mse")
        >>> x = np.ones((2, 4, 3), "float32")
        >>> history = learner.fit(
        ...     [x[:, :1], x, x[:, :1]], x[:, :1], verbose=0)
        >>> predictor = keras.Model([query, memory], prediction)
        >>> predictor.predict([x[:, :1], x], verbose=0).shape
        (2, 1, 3)
    """

    _tensors = ("prediction", "target", "log_probability", "sample_weight")

    def __init__(self, loss: Any, momentum: float = 0.9, **kwargs: Any) -> None:
        checks.fraction("momentum", momentum)
        loss = keras.losses.get(loss)
        if loss is None:
            raise ValueError(
                "`loss` must be a name, a function or a keras.losses.Loss. "
                "Received: loss=None"
            )
        # Log-probabilities would lose their fractional part in half precision.
        super().__init__(autocast=False, **kwargs)
        self.supports_masking = True
        self.loss: Any = loss
        self.momentum = momentum

    def build(self, prediction_shape: Shape) -> None:
        """Creates the baseline."""
        self.baseline: keras.Variable = self.add_weight(
            shape=(),
            initializer="zeros",
            trainable=False,
            name="baseline",
            dtype="float32",
            autocast=False,
        )

    def call(
        self,
        prediction: TensorLike,
        target: TensorLike,
        log_probability: TensorLike,
        sample_weight: TensorLike | None = None,
        training: bool | None = None,
    ) -> Tensor:
        """Adds the loss; the class docstring lists the arguments."""
        self._check_batches(prediction, target, log_probability)
        checks.floats("prediction", prediction)
        checks.floats("log_probability", log_probability)
        checks.no_complex("target", target)
        if sample_weight is not None:
            checks.no_complex("sample_weight", sample_weight)
            self._check_weights(prediction, sample_weight)
        # A mean over no examples would be NaN, and the baseline with it.
        if not training or prediction.shape[0] == 0:
            return prediction
        losses = ops.stop_gradient(
            self._losses_of(prediction, target, sample_weight)
        )
        log_probability = _by_example(ops.cast(log_probability, "float32"))
        log_probability = ops.sum(log_probability, axis=1)
        baseline = ops.convert_to_tensor(self.baseline)
        self.add_loss(ops.mean((losses - baseline) * log_probability))
        # After its use: a baseline that depends on the choice adds a bias.
        self.baseline.assign(
            self.momentum * baseline + (1 - self.momentum) * ops.mean(losses)
        )
        return prediction

    if TYPE_CHECKING:
        __call__ = call

    def _losses_of(self, prediction, target, sample_weight):
        """Returns the loss per example, float32 (B,), as averaged by Keras."""
        loss = self.loss
        if isinstance(loss, keras.losses.Loss):
            loss = loss.call
        losses = loss(target, ops.cast(prediction, "float32"))
        rank = len(losses.shape)
        if not rank:
            raise ValueError(
                "`loss` must keep the batch axis. Received: a loss of shape "
                f"() for `prediction` of shape {tuple(prediction.shape)}"
            )
        if sample_weight is not None:
            weight = ops.cast(sample_weight, "float32")
            missing = (None,) * (rank - len(weight.shape))
            losses = losses * weight[(..., *missing)]
        mask = implicit_mask(prediction)
        if mask is not None and len(mask.shape) == rank:
            # Like Keras, average over the unmasked losses of the batch.
            fraction = ops.mean(ops.cast(mask, "float32"))
            losses = ops.where(mask, losses / ops.maximum(fraction, 1e-7), 0)
        return ops.mean(_by_example(losses), axis=1)

    def _check_batches(self, prediction, target, log_probability):
        shapes = [tuple(x.shape) for x in (prediction, target, log_probability)]
        if not all(shapes) or not all(
            checks.fits(shape[:1], shapes[0][:1]) for shape in shapes
        ):
            raise ValueError(
                "`prediction`, `target` and `log_probability` must have the "
                "same batch axis. Received: "
                f"{', '.join(str(shape) for shape in shapes)}"
            )

    @staticmethod
    def _check_weights(prediction, sample_weight):
        # The shape of the losses: that of the prediction, or without its last
        # axes.
        shape = tuple(sample_weight.shape)
        count = len(shape)
        if not count or not checks.fits(shape, prediction.shape[:count]):
            raise ValueError(
                "`sample_weight` must have the shape of the losses, or (batch,)"
                f". Received: sample_weight of shape {shape} for a prediction "
                f"of shape {tuple(prediction.shape)}"
            )

    def compute_output_spec(
        self,
        prediction: TensorLike,
        target: TensorLike,
        log_probability: TensorLike,
        sample_weight: TensorLike | None = None,
        training: bool | None = None,
    ) -> Any:
        """Returns the symbolic prediction."""
        self._check_batches(prediction, target, log_probability)
        return keras.KerasTensor(prediction.shape, dtype=prediction.dtype)

    def get_config(self) -> dict[str, Any]:
        """Returns the constructor's arguments."""
        return {
            **super().get_config(),
            "loss": keras.losses.serialize(self.loss),
            "momentum": self.momentum,
        }


def _by_example(x):
    """Flattens all axes after the batch: (B, ...) -> (B, F)."""
    rows, *features = ops.shape(x)
    # With no rows, the size of an axis of -1 would be ambiguous.
    return ops.reshape(x, (rows, math.prod(features)))
