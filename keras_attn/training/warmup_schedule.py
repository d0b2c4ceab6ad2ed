"""Linear warmup and inverse square root decay."""

from typing import Any

import keras

from keras_attn import checks
from keras_attn.backend import concrete
from keras_attn.typing import TensorLike

_MOST = 2**31 - 1


@keras.saving.register_keras_serializable(package="keras_attn")
class WarmupSchedule(keras.optimizers.schedules.LearningRateSchedule):
    """Learning-rate schedule: linear warmup, then decay by 1 / sqrt(step).

        rate(s) = scale * hidden_dim^-0.5 * min(s^-0.5, s * warmup_steps^-1.5)

    Vaswani et al. 2017, sec. 5.3, eq. 3, https://arxiv.org/abs/1706.03762. The
    step s counts from 1: the update at `optimizer.iterations` 0 is step 1, so
    no update has a rate of zero. The peak, at
    s = warmup_steps, is scale * (hidden_dim * warmup_steps)^-0.5. The paper
    uses it with Adam(beta_1=0.9, beta_2=0.98, epsilon=1e-9).

    Args:
        hidden_dim: int >= 1. Width of the model, d_model in the paper.
        warmup_steps: int >= 1. Optimizer steps until the peak. Default 4000.
        scale: float > 0. Factor on the whole curve. Default 1.0.

    Raises:
        ValueError: `hidden_dim` or `warmup_steps` is not a positive integer;
            `scale` is not a positive number.

    Examples:
        >>> schedule = WarmupSchedule(hidden_dim=512, warmup_steps=4000)
        >>> [round(float(schedule(step)), 6) for step in (0, 3999, 15999)]
        [0.0, 0.000699, 0.000349]
        >>> optimizer = keras.optimizers.Adam(
        ...     schedule, beta_2=0.98, epsilon=1e-9
        ... )
    """

    def __init__(
        self, hidden_dim: int, warmup_steps: int = 4000, scale: float = 1.0
    ) -> None:
        super().__init__()
        self.hidden_dim: int = checks.integer(
            "hidden_dim", hidden_dim, 1, _MOST
        )
        self.warmup_steps: int = checks.integer(
            "warmup_steps", warmup_steps, 1, _MOST
        )
        self.scale: float = checks.positive("scale", scale)

    def __call__(self, step: TensorLike) -> Any:
        """Returns the rate of the update after `step` updates.

        Args:
            step: int scalar, a tensor, variable or number, at least 0: updates
                so far, as in `optimizer.iterations`. A tensor of several
                numbers gives several rates.

        Returns:
            Float32 tensor in the shape of `step`: learning rate per step.

        Raises:
            ValueError: `step` does not hold such integers. A negative number is
                detected where the values of a tensor can be read.
        """
        # The constants are multiplied in float64: as float32 tensors, their
        # rounding errors would accumulate.
        height = self.scale * self.hidden_dim**-0.5
        slope = height * self.warmup_steps**-1.5
        if isinstance(step, int):
            # As float: JAX has no integers above 2^31.
            step = float(checks.integer("step", step, least=0))
        else:
            checks.tensor("step", step, "an integer or an integer tensor")
            checks.integers("step", step)
            step = keras.ops.convert_to_tensor(step)
            known = concrete(step)
            if known is not None and known.min(initial=0) < 0:
                raise ValueError(
                    f"`step` must be at least 0. Received: {known.min()}"
                )
        step = keras.ops.cast(step, "float32") + 1.0
        return keras.ops.minimum(height / keras.ops.sqrt(step), slope * step)

    def get_config(self) -> dict[str, Any]:
        """Returns the constructor's arguments."""
        return {
            "hidden_dim": self.hidden_dim,
            "warmup_steps": self.warmup_steps,
            "scale": self.scale,
        }
