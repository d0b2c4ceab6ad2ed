"""Freezing and unfreezing of weights by path."""

import re
from collections.abc import Sequence
from typing import Any

import keras

from keras_attn import checks


def freeze(model: keras.Model, pattern: str = "") -> list[str]:
    """Freezes weights: sets `trainable = False` by path.

    Args:
        model: Keras model, built. Compile it afterwards, even if it is compiled
            already: an optimizer keeps the weights that it was built with.
        pattern: str, a regular expression that is searched for in the paths of
            weights, such as `"block_[0-5]/"` or `"embedding"`. Default: all
            weights.

    Returns:
        List of the paths of the newly frozen weights. Saved files do not record
        which weights are frozen.

    Raises:
        ValueError: no weight has such a path, the pattern is not a regular
            expression, or the model is not built.

    Examples:
        >>> model = keras_attn.models.Encoder(
        ...     9, num_layers=2, num_heads=1, hidden_dim=4, intermediate_dim=4)
        >>> frozen = keras_attn.training.freeze(model, "embedding|block_0/")
        >>> len(frozen), len(model.trainable_weights)
        (17, 16)
    """
    return _set(model, pattern, trainable=False)


def unfreeze(model: keras.Model, pattern: str = "") -> list[str]:
    """Unfreezes weights: sets `trainable = True` by path.

    Args:
        model: as for `freeze`.
        pattern: as for `freeze`.

    Returns:
        List of the paths of the newly trainable weights.

    Raises:
        ValueError: as for `freeze`.

    Examples:
        >>> model = keras_attn.models.Encoder(
        ...     9, num_layers=2, num_heads=1, hidden_dim=4, intermediate_dim=4)
        >>> frozen = keras_attn.training.freeze(model)
        >>> len(keras_attn.training.unfreeze(model, "block_1/.*norm"))
        4
    """
    return _set(model, pattern, trainable=True)


def matching(name: str, pattern: str, paths: Sequence[str]) -> list[str]:
    """Returns the paths that contain a match of a pattern.

    Args:
        name: str. Name of the argument, for error messages.
        pattern: str.
        paths: list of str.

    Raises:
        ValueError: no path matches, or the pattern is not a regular expression.
    """
    check_pattern(name, pattern)
    found = [path for path in paths if re.search(pattern, path)]
    if not found:
        raise ValueError(
            f"`{name}` must be found in a path, such as {paths[0]!r}. "
            f"Received: {name}={checks.shown(pattern)}"
        )
    return found


def check_pattern(name: str, pattern: str) -> str:
    """Returns `pattern` if it is a regular expression, else raises."""
    checks.pattern(name, pattern)
    return pattern


def check_model(model: keras.Model) -> Any:
    """Returns `model` if it is a layer or a model with weights, else raises."""
    checks.instance("model", model, keras.layers.Layer, "a Keras model")
    if not model.weights:
        raise ValueError(
            "`model` must be built and have weights. "
            f"Received: {model.name}, which has none"
        )
    return model


def _set(model, pattern, trainable):
    check_model(model)
    weights = {weight.path: weight for weight in model.weights}
    changed = []
    for path in matching("pattern", pattern, list(weights)):
        if weights[path].trainable != trainable:
            weights[path].trainable = trainable
            changed.append(path)
    return changed
