"""The state of a model and its optimizer during training."""

from typing import Any

import keras
from keras import ops

from keras_attn import backend
from keras_attn.typing import Nest


def model_state(model: keras.Model) -> dict[str, Any]:
    """Returns weights, random seeds, optimizer and metrics as arrays.

    Args:
        model: compiled `keras.Model`, its variables up to date.

    Returns:
        Dict of lists of dict: the path and value of each variable.
    """
    return {
        name: [
            {"path": v.path, "value": backend.to_numpy(v.value)}
            for v in variables
        ]
        for name, variables in _groups(model).items()
    }


def set_model_state(
    model: keras.Model,
    state: dict[str, Any],
    groups: Any = ("model", "optimizer"),
) -> None:
    """Restores the state that `model_state` returned.

    Args:
        model: compiled and built `keras.Model`.
        state: dict, as returned by `model_state`.
        groups: groups to restore: "model" (weights and random seeds),
            "optimizer", "metrics".

    Raises:
        ValueError: the variables do not match the state; none is changed.
    """
    optimizer = getattr(model, "optimizer", None)
    if optimizer is not None and not optimizer.built:
        optimizer.build(model.trainable_variables)
    found = _groups(model)
    for name in groups:
        _check(name, found[name], state[name])
    for name in groups:
        for variable, saved in zip(found[name], state[name], strict=True):
            variable.assign(
                ops.convert_to_tensor(saved["value"], dtype=variable.dtype)
            )


def metrics_are_built(model: keras.Model, state: Nest) -> bool:
    """Returns whether the metric variables of the state exist already."""
    return len(_groups(model)["metrics"]) == len(state["metrics"])


def build_metrics(model: keras.Model, batch: Any) -> None:
    """Builds the metrics of a compiled model.

    On TensorFlow the first training step creates their variables, which is too
    late to restore them (as of Keras 3.15.1).

    Args:
        model: compiled `keras.Model`.
        batch: a batch of the data of `fit`.
    """
    x, y, weight = keras.utils.unpack_x_y_sample_weight(batch)
    predicted = model(x, training=False)
    model.compute_loss(x, y, predicted, weight, training=False)
    model.compute_metrics(x, y, predicted, weight)


def _groups(model):
    metrics = model.metrics_variables
    seen = {id(v) for v in metrics}
    optimizer = getattr(model, "optimizer", None)
    return {
        "model": [v for v in model.variables if id(v) not in seen],
        "optimizer": [] if optimizer is None else list(optimizer.variables),
        "metrics": list(metrics),
    }


def _check(name, variables, saved):
    if len(variables) != len(saved):
        raise ValueError(
            "`directory` must hold a backup of this model. "
            f"Received: {len(saved)} variables of the {name} there, "
            f"{len(variables)} here"
        )
    for variable, other in zip(variables, saved, strict=True):
        # Names may differ: Keras numbers layers in order of creation.
        if tuple(variable.shape) != other["value"].shape:
            raise ValueError(
                "`directory` must hold a backup of this model. Received: "
                f"{other['path']} of shape {other['value'].shape} there, "
                f"{variable.path} of shape {tuple(variable.shape)} here"
            )
