"""Which weights of a model learn, chosen by name."""

import re


def freeze(model, pattern=""):
    """Keeps weights as they are in the trainings that follow.

    Args:
        model: Keras model, built; not compiled yet, or to be compiled anew: an
            optimizer keeps to the weights that it began with.
        pattern: str, a regular expression that is looked for in the paths of
            weights, such as `"block_[0-5]/"` or `"embedding"`. Default: all of
            them.

    Returns:
        List of the paths of those that are frozen now and were not before.
        Files do not keep what is frozen.

    Raises:
        ValueError: no weight has such a path, or no regular expression.

    Examples:
        >>> model = keras_attn.models.Encoder(
        ...     9, num_layers=2, num_heads=1, hidden_dim=4, intermediate_dim=4)
        >>> frozen = keras_attn.training.freeze(model, "embedding|block_0/")
        >>> len(frozen), len(model.trainable_weights)
        (17, 16)
    """
    return _set(model, pattern, trainable=False)


def unfreeze(model, pattern=""):
    """Lets weights learn again.

    Args:
        model: as for `freeze`.
        pattern: as for `freeze`.

    Returns:
        List of the paths of those that learn now and did not before.

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


def matching(name, pattern, paths):
    """Returns the paths in which a pattern is found.

    Args:
        name: str. What the argument with the pattern is called.
        pattern: str.
        paths: list of str.

    Raises:
        ValueError: none, or no regular expression.
    """
    try:
        found = [path for path in paths if re.search(pattern, path)]
    except re.error as error:
        raise ValueError(
            f"`{name}` must be a regular expression. "
            f"Received: {name}={pattern!r} ({error})"
        ) from error
    if not found:
        raise ValueError(
            f"`{name}` must be found in a path, such as {paths[0]!r}. "
            f"Received: {name}={pattern!r}"
        )
    return found


def _set(model, pattern, trainable):
    weights = {weight.path: weight for weight in model.weights}
    changed = []
    for path in matching("pattern", pattern, list(weights)):
        if weights[path].trainable != trainable:
            weights[path].trainable = trainable
            changed.append(path)
    return changed
