"""Maps and labels of `plot_attention`, by layer."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from keras_attn import checks
from keras_attn.explain.arguments import index, is_list, number_array
from keras_attn.explain.attention_map import (
    AttentionMap,
    checked_map,
    token_text,
)
from keras_attn.typing import TensorLike


class DrawnLayer(NamedTuple):
    """The maps and labels of one layer.

    Args:
        title: str, or None.
        maps: float (n, T, S).
        names: list of n str.
        rows: list of T str, or None.
        columns: list of S str, or None.
    """

    title: Any
    maps: Any
    names: Any
    rows: Any
    columns: Any


def drawn_layers(
    weights: TensorLike,
    query_tokens: Sequence[str] | None,
    key_tokens: Sequence[str] | None,
    head: int | None,
    row: int,
) -> list[DrawnLayer]:
    """Checks and converts the arguments of `plot_attention`.

    Args:
        weights: array, `AttentionMap` or list of these, as there.
        query_tokens: list of str, or None.
        key_tokens: list of str, or None.
        head: int, or None.
        row: int.

    Returns:
        List of `DrawnLayer`.

    Raises:
        ValueError: invalid arguments.
    """
    several = isinstance(weights, (list, tuple)) and not isinstance(
        weights, AttentionMap
    )
    if several and any(isinstance(one, AttentionMap) for one in weights):
        if not all(isinstance(one, AttentionMap) for one in weights):
            raise ValueError(
                "`weights` must be a list of `AttentionMap` only, or an array. "
                f"Received: {[type(one).__name__ for one in weights]}"
            )
        if len(weights) > 1 and not query_tokens is key_tokens is None:
            raise ValueError(
                "`query_tokens` and `key_tokens` must be given in their maps "
                f"for several layers. Received: {len(weights)} maps"
            )
        return [
            _layer(one, query_tokens, key_tokens, head, row) for one in weights
        ]
    return [_layer(weights, query_tokens, key_tokens, head, row)]


def _layer(weights, query_tokens, key_tokens, head, row):
    title, numbers = None, None
    if not isinstance(weights, AttentionMap):
        index("row", row, 1, "the rows of an array of weights")
    else:
        one = weights
        one = checked_map("weights", one)
        weights, queries, keys = one.of(row)
        title = one.layer if not one.call else f"{one.layer}, call {one.call}"
        numbers = list(one.heads)
        query_tokens = queries if query_tokens is None else query_tokens
        key_tokens = keys if key_tokens is None else key_tokens
    maps, names = _maps(weights, head, numbers)
    return DrawnLayer(
        title,
        maps,
        names,
        _labels("query_tokens", query_tokens, maps.shape[1]),
        _labels("key_tokens", key_tokens, maps.shape[2]),
    )


def _maps(weights, head, numbers=None):
    """Returns the maps to draw, float (n, T, S), and their names."""
    array = number_array("weights", weights, "an array or `AttentionMap`")
    shape = array.shape
    if len(shape) == 4 and shape[0] == 1:
        array = array[0]
    elif len(shape) == 2:
        array = array[None]
    if array.ndim != 3 or 0 in array.shape:
        raise ValueError(
            "`weights` must be of shape (T, S), (N, T, S) or (1, N, T, S). "
            f"Received: weights of shape {shape}"
        )
    array = array.astype("float32")
    if not np.all(np.isfinite(array)) or array.min() < 0:
        raise ValueError(
            "`weights` must be finite and not negative (weights come after the "
            "softmax, scores before it). Received: values from "
            f"{array.min()} to {array.max()}"
        )
    count = len(array)
    if head is None:
        if numbers is None:
            numbers = range(count) if count > 1 else []
        names = [f"head {number}" for number in numbers]
        return array, names or [""]
    if isinstance(head, bool) or not isinstance(head, (int, np.integer)):
        raise ValueError(
            f"`head` must be an int. Received: head={checks.shown(head)}"
        )
    known = list(range(count)) if numbers is None else numbers
    if head not in known:
        allowed = (
            f"lie in [0, {count}), the heads of `weights`"
            if known == list(range(count))
            else f"be one of {known}, the heads of the map"
        )
        raise ValueError(f"`head` must {allowed}. Received: head={head}")
    index = known.index(head)
    return array[index : index + 1], [f"head {head}"]


def _labels(name, tokens, count):
    """Returns printable labels, or None where there are no tokens."""
    if tokens is None:
        return None
    if not is_list(tokens):
        raise ValueError(
            f"`{name}` must be a list of tokens. "
            f"Received: {name}={checks.shown(tokens)}"
        )
    tokens = [token_text(token) for token in tokens]
    if len(tokens) != count:
        raise ValueError(
            f"`{name}` must name the {count} positions of `weights`. "
            f"Received: {len(tokens)} tokens"
        )
    # A line break in a label would break the layout.
    return [
        "".join(c if c.isprintable() else repr(c)[1:-1] for c in token)
        for token in tokens
    ]
