"""Layer-wise learning rates."""

import math
import re
from typing import Any, Self

import keras
from keras import ops

from keras_attn import checks
from keras_attn.training.freezing import check_pattern, matching
from keras_attn.typing import Tensor


@keras.saving.register_keras_serializable(package="keras_attn")
class LayerwiseLearningRates(keras.optimizers.Optimizer):
    """Wraps an optimizer and scales the learning rate of each weight.

        w <- w + f (w' - w)

    with w' the weight after the wrapped optimizer's update, and f its
    multiplier. In all Keras optimizers but `Ftrl` an update is proportional to
    the learning rate, so this equals training with f times the rate, decoupled
    weight decay included. (Howard and Ruder 2018, sec. 3.2,
    https://arxiv.org/abs/1801.06146: "discriminative fine-tuning".)

    Multipliers are assigned by the paths of weights; `layerwise_lr_multipliers`
    returns multipliers that decay from block to block.

    Args:
        optimizer: Keras optimizer, not built yet. Its clipping, schedule,
            gradient accumulation and weight decay are kept.
        multipliers: dict of str to float > 0: regular expressions that are
            searched for in the paths of weights, and their multipliers. The
            first match counts; weights without a match have multiplier 1.
        name: str. Default: the name of the class.

    Raises:
        ValueError: `optimizer` is not an optimizer, keeps moving averages of
            weights, or takes steps that are not proportional to its rate; or
            multipliers out of range. At the first step: an expression matches
            no path.

    Examples:
        >>> model = keras_attn.models.Encoder(
        ...     9, num_layers=2, num_heads=1, hidden_dim=4, intermediate_dim=4)
        >>> optimizer = keras_attn.training.LayerwiseLearningRates(
        ...     keras.optimizers.AdamW(1e-3),
        ...     {"embedding": 0.1, "block_0/": 0.5})
        >>> model.compile(optimizer, "mse")
        >>> optimizer.multiplier("block_0/feed_forward/inner/kernel")
        0.5
    """

    def __init__(
        self,
        optimizer: keras.optimizers.Optimizer,
        multipliers: dict[str, float],
        name: str | None = None,
    ) -> None:
        if not isinstance(optimizer, keras.optimizers.Optimizer):
            raise ValueError(
                "`optimizer` must be a Keras optimizer. "
                f"Received: {checks.shown(optimizer)}"
            )
        if isinstance(optimizer, keras.optimizers.Ftrl) or optimizer.use_ema:
            raise ValueError(
                "`optimizer` must take steps that are proportional to its "
                "rate, and keep no moving average of weights. "
                f"Received: {type(optimizer).__name__} with "
                f"use_ema={optimizer.use_ema}"
            )
        if optimizer.built:
            raise ValueError(
                "`optimizer` must not be built yet. "
                f"Received: {optimizer.name}, which is built"
            )
        if not isinstance(multipliers, dict) or not multipliers:
            raise ValueError(
                "`multipliers` must be a dict of patterns to numbers. "
                f"Received: multipliers={checks.shown(multipliers)}"
            )
        for pattern, multiplier in multipliers.items():
            check_pattern("multipliers", pattern)
            number = isinstance(multiplier, (int, float))
            number = number and not isinstance(multiplier, bool)
            if not number or not 0 < multiplier < math.inf:
                raise ValueError(
                    "`multipliers` must be numbers above 0. "
                    f"Received: {checks.shown(multiplier)} for "
                    f"{checks.shown(pattern)}"
                )
        if name is not None:
            checks.string("name", name)
        super().__init__(learning_rate=0.0, name=name)
        self.optimizer = optimizer
        self.multipliers: dict[str, float] = {
            p: float(multiplier) for p, multiplier in multipliers.items()
        }

    def multiplier(self, path: str) -> float:
        """Returns the multiplier of the weight with this path."""
        checks.string("path", path)
        for pattern, multiplier in self.multipliers.items():
            if re.search(pattern, path):
                return multiplier
        return 1.0

    def build(self, variables: Any) -> None:
        """Builds the optimizer for some variables of a model."""
        for pattern in self.multipliers:
            matching("multipliers", pattern, [v.path for v in variables])
        self.optimizer.build(variables)
        super().build(variables)

    def apply(self, grads: Any, trainable_variables: Any = None) -> None:
        """Updates the weights, as any optimizer does."""
        if trainable_variables is None:
            # Private: an optimizer has no public list of the variables that it
            # trains, as of Keras 3.15.1.
            trainable_variables = self._trainable_variables
        trainable_variables = list(trainable_variables)
        if not self.built:
            with keras.name_scope(self.name):
                self.build(trainable_variables)
            self.built = True
        scaled = [
            (variable, multiplier, ops.copy(variable))
            for variable in trainable_variables
            if (multiplier := self._factor_of(variable)) != 1
        ]
        self.optimizer.apply(grads, trainable_variables)
        for variable, multiplier, before in scaled:
            variable.assign(before + multiplier * (variable - before))

    def stateless_apply(
        self, optimizer_variables: Any, grads: Any, trainable_variables: Any
    ) -> tuple[Any, Any]:
        """Returns updated values, as any optimizer does."""
        # Private: the public `variables` includes those of the wrapped
        # optimizer (see below), as of Keras 3.15.1.
        own = len(self._variables)
        after, inner = self.optimizer.stateless_apply(
            optimizer_variables[own:], grads, trainable_variables
        )
        after = [
            new if multiplier == 1 else old + multiplier * (new - old)
            for old, new, multiplier in zip(
                trainable_variables,
                after,
                map(self._factor_of, self._trainable_variables),
                strict=True,
            )
        ]
        # These can be variables: `LossScaleOptimizer` passes them as they are
        # (as of Keras 3.15.1).
        unchanged = map(ops.convert_to_tensor, optimizer_variables[:own])
        return after, [*unchanged, *inner]

    def _factor_of(self, variable):
        # Variables overwritten by their gradient (float8 scales) have no rate.
        # The check is private as of Keras 3.15.1.
        if self._overwrite_variable_with_gradient(variable):
            return 1.0
        return self.multiplier(variable.path)

    @property
    def variables(self) -> list[keras.Variable]:
        """The variables of this optimizer and of the wrapped one."""
        return self._variables + self.optimizer.variables

    @property
    def learning_rate(self) -> Any:
        """The learning rate of weights with multiplier 1."""
        return self.optimizer.learning_rate

    @learning_rate.setter
    def learning_rate(self, learning_rate: Any) -> None:
        self.optimizer.learning_rate = learning_rate

    @property
    def iterations(self) -> keras.Variable:
        """Number of steps taken."""
        return self.optimizer.iterations

    def scale_loss(self, loss: Any) -> Tensor:
        """Scales a loss as the wrapped optimizer does."""
        return self.optimizer.scale_loss(loss)

    def exclude_from_weight_decay(
        self, var_list: Any = None, var_names: Any = None
    ) -> None:
        """Excludes weights from weight decay."""
        self.optimizer.exclude_from_weight_decay(var_list, var_names)

    def finalize_variable_values(self, var_list: Any) -> None:
        """Finalizes variables as the wrapped optimizer does."""
        self.optimizer.finalize_variable_values(var_list)

    def get_config(self) -> dict[str, Any]:
        """Returns the constructor's arguments."""
        inner = keras.saving.serialize_keras_object(self.optimizer)
        # On PyTorch, Keras saves a class that only its PyTorch backend has
        # (as of Keras 3.15.1).
        if inner["module"].startswith("keras.") and hasattr(
            keras.optimizers, inner["class_name"]
        ):
            inner.update(module="keras.optimizers", registered_name=None)
        return {
            "optimizer": inner,
            "multipliers": self.multipliers,
            "name": self.name,
        }

    @classmethod
    def from_config(
        cls,
        config: dict[str, Any],
        custom_objects: dict[str, Any] | None = None,
    ) -> Self:
        """Creates the optimizer and the wrapped one."""
        checks.instance("config", config, dict, "a dict")
        if "optimizer" not in config:
            raise ValueError(
                "`config` must have the key `optimizer`. "
                f"Received: {checks.shown(list(config))}"
            )
        config = dict(config)
        config["optimizer"] = keras.saving.deserialize_keras_object(
            config["optimizer"], custom_objects=custom_objects
        )
        return cls(**config)
