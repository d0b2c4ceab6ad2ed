"""What a choice at random learns from: the loss that came of it."""

import keras
from keras import ops

from keras_attn import checks
from keras_attn.ops.visibility import implicit_mask


@keras.saving.register_keras_serializable(package="keras_attn")
class Reinforce(keras.layers.Layer):
    """Lets choices that have no gradient learn from the loss they led to.

    For the loss l_i of example i, and log p_i, the log-probability of all
    choices made for it, it adds to the loss of the model

        1/B sum_i stop_gradient(l_i - b) log p_i

    whose gradient is, in expectation over the choices, what the gradient of
    the loss itself leaves out (Williams 1992,
    https://doi.org/10.1007/BF00992696). The baseline b changes no
    expectation, only the variance:

        b <- momentum b + (1 - momentum) 1/B sum_i l_i

    Xu et al. 2015, sec. 4.1, https://arxiv.org/abs/1502.03044, whose reward is
    -l_i; their entropy term is left out.

    A layer with `hard="reinforce"` cannot know what loss its choice will lead
    to. So this one stands at the end of the model, where the targets are an
    input, and returns the prediction as it is. The loss of `compile` stays
    what it was; give both the same one. The model that predicts needs neither
    this layer nor the targets, and shares its layers with the one that learns.
    The loss that `fit` shows contains the term above, that of `evaluate` does
    not.

    Args:
        loss: name, function or `keras.losses.Loss`, whose losses are averaged
            over each example.
        momentum: float in [0, 1). Of the baseline. Default 0.9, as in Xu et
            al.; 0: the loss of the batch before.
        **kwargs: arguments of `keras.layers.Layer`: `name`, `dtype`, ...

    Call arguments:
        prediction: float (B, ...), what the model predicts; its implicit Keras
            mask says which losses count.
        target: (B, ...), what it ought to predict.
        log_probability: float (B, ...), from `ScoredAttention`; all of an
            example are summed up. That of several layers: their sum.
        sample_weight: float (B,), or of the shape of the losses. Factor on
            each loss, 0 for padding.
        training: bool. Whether anything is added, and the baseline moves.

    Returns:
        `prediction`, as it is.

    Raises:
        ValueError: `momentum` out of range, another batch in one argument than
            in the others, or a loss that leaves no batch axis.

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

    def __init__(self, loss, momentum=0.9, **kwargs):
        checks.fraction("momentum", momentum)
        loss = keras.losses.get(loss)
        if loss is None:
            raise ValueError(
                "`loss` must be a name, a function or a keras.losses.Loss. "
                "Received: loss=None"
            )
        # The log-probabilities would lose their fraction in half precision.
        super().__init__(autocast=False, **kwargs)
        self.supports_masking = True
        self.loss = loss
        self.momentum = momentum

    def build(self, prediction_shape):
        """Creates the baseline."""
        self.baseline = self.add_weight(
            shape=(),
            initializer="zeros",
            trainable=False,
            name="baseline",
            dtype="float32",
            autocast=False,
        )

    def call(
        self,
        prediction,
        target,
        log_probability,
        sample_weight=None,
        training=None,
    ):
        """Adds the loss; the class docstring lists the arguments."""
        self._check_batches(prediction, target, log_probability)
        if not training:
            return prediction
        losses = ops.stop_gradient(
            self._losses_of(prediction, target, sample_weight)
        )
        log_probability = _by_example(ops.cast(log_probability, "float32"))
        log_probability = ops.sum(log_probability, axis=1)
        baseline = ops.convert_to_tensor(self.baseline)
        self.add_loss(ops.mean((losses - baseline) * log_probability))
        # After its use: a baseline that knew this choice would be a bias.
        self.baseline.assign(
            self.momentum * baseline + (1 - self.momentum) * ops.mean(losses)
        )
        return prediction

    def _losses_of(self, prediction, target, sample_weight):
        """The loss of each example, float32 (B,), whose mean Keras takes."""
        loss = self.loss
        if isinstance(loss, keras.losses.Loss):
            loss = loss.call
        losses = loss(target, ops.cast(prediction, "float32"))
        rank = len(losses.shape)
        if not rank:
            raise ValueError(
                "`loss` must leave the batch axis. Received: a loss of shape "
                f"() for `prediction` of shape {tuple(prediction.shape)}"
            )
        if sample_weight is not None:
            weight = ops.cast(sample_weight, "float32")
            missing = (None,) * (rank - len(weight.shape))
            losses = losses * weight[(..., *missing)]
        mask = implicit_mask(prediction)
        if mask is not None and len(mask.shape) == rank:
            # A mean over what counts, in the whole batch, as Keras takes it.
            share = ops.mean(ops.cast(mask, "float32"))
            losses = ops.where(mask, losses / ops.maximum(share, 1e-7), 0)
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

    def compute_output_spec(
        self, prediction, target, log_probability, *args, **kwargs
    ):
        """Returns the symbolic prediction."""
        self._check_batches(prediction, target, log_probability)
        return keras.KerasTensor(prediction.shape, dtype=prediction.dtype)

    def get_config(self):
        """Returns the constructor's arguments."""
        return {
            **super().get_config(),
            "loss": keras.losses.serialize(self.loss),
            "momentum": self.momentum,
        }


def _by_example(x):
    """(B, ...) -> (B, the rest side by side)."""
    return ops.reshape(x, (ops.shape(x)[0], -1))
