"""Token names for both axes of a layer's weights."""

from typing import Any

import keras
import numpy as np

from keras_attn import checks
from keras_attn.backend import bool_mask
from keras_attn.explain.arguments import is_list
from keras_attn.explain.attention_map import token_text
from keras_attn.typing import TensorLike


class TokenNames:
    """Finds the names of a layer's queries and keys.

    Args:
        tokens: None; a callable of a list of ids that returns their names, or
            a list of B lists of str; or a pair of either, for models that read
            a source and a target.
        inputs: the inputs of the model.
        model: the model; its `pad_id`, if any, marks padding.
    """

    def __init__(
        self, tokens: Any, inputs: TensorLike, model: keras.Model
    ) -> None:
        self._names = None
        if tokens is None:
            return
        sides = list(inputs) if _is_pair(inputs) else [inputs]
        self._target_positions = None
        if isinstance(inputs, dict) and "target_positions" in inputs:
            self._target_positions = _numpy(inputs["target_positions"])
        if not isinstance(tokens, tuple):
            if len(sides) == 2 and not callable(tokens):
                tokens = (tokens,)
            else:
                tokens = (tokens,) * len(sides)
        if len(tokens) != len(sides):
            raise ValueError(
                "`tokens` must be a pair where the model reads a source and a "
                f"target, and only there. Received: {len(tokens)}"
            )
        self._names, self._lengths = [], []
        for number, (names, side) in enumerate(zip(tokens, sides, strict=True)):
            ids, mask = _ids(side, model)
            start = getattr(model, "start_id", None)
            if number == 1 and start is not None:
                # A start token with the padding id, as in Marian, is a token.
                mask = mask | ((np.arange(ids.shape[1]) == 0) & (ids == start))
            self._names.append(_named(names, ids, mask))
            self._lengths.append(ids.shape[1])

    def of(
        self, path: str, call: int, shape: tuple[Any, ...]
    ) -> tuple[Any, Any]:
        """Returns the names of a layer's queries and keys; each may be None.

        Args:
            path: str. The path of the layer.
            call: int. The number of its call.
            shape: tuple, of its weights, (B, N, T, S).
        """
        if self._names is None:
            return None, None
        query_side = key_side = -1
        if path.startswith("encoder"):
            query_side = key_side = 0
        elif path.endswith("cross_attention") or path == "decoder/attention":
            key_side = 0
        queries, keys = self._names[query_side], self._names[key_side]
        if call and self._target_positions is not None:
            queries = [
                [row[i] if 0 <= i < len(row) else "" for i in targets]
                for row, targets in zip(
                    queries, self._target_positions, strict=True
                )
            ]
        elif self._lengths[query_side] != shape[2]:
            queries = None
        before = shape[3] - self._lengths[key_side]
        if keys is not None and before:
            # The keys start with the memory of earlier segments.
            keys = [[""] * before + row for row in keys] if before > 0 else None
        return queries, keys


def _is_pair(inputs):
    """Whether inputs are two arrays, and not two rows of one."""
    return (
        isinstance(inputs, tuple | list)
        and len(inputs) == 2
        and all(isinstance(x, dict) or np.ndim(_first(x)) for x in inputs)
    )


def _first(array):
    return array[0] if isinstance(array, tuple | list) else _numpy(array)[0]


def _numpy(array):
    return keras.ops.convert_to_numpy(array)


def _ids(side, model):
    """Returns the ids of one side, (rows, T), and their token mask."""
    mask = None
    if isinstance(side, dict):
        if "token_ids" not in side:
            raise ValueError(
                "`tokens` can only be given for models with token_ids. "
                f"Received: inputs of {' and '.join(map(str, side))}"
            )
        side, mask = side["token_ids"], side.get("padding_mask")
    ids = _numpy(side)
    # The choices of `MultipleChoice` are separate rows.
    ids = ids.reshape(-1, ids.shape[-1]) if ids.dtype.kind in "iu" else ids
    if mask is not None:
        mask = bool_mask("padding_mask", _numpy(mask))
        return ids, mask.reshape(ids.shape)
    model = getattr(model, "classifier", model)
    model = getattr(model, "encoder", model)
    pad_id = getattr(model, "pad_id", None)
    if pad_id is None or ids.dtype.kind not in "iu":
        return ids, np.ones(ids.shape[:2], bool)
    return ids, ids != pad_id


def _named(tokens, ids, mask):
    """Returns a name for each position of each row up to its last token."""
    if tokens is None:
        return None
    if not callable(tokens):
        return _given(tokens, ids)
    rows = []
    for row, real in zip(ids, mask, strict=True):
        given = [int(i) for i in row[real]]
        names = tokens(given)
        if not is_list(names) or len(names) != len(given):
            raise ValueError(
                "`tokens` must return a list of one name for each of "
                f"{len(given)} ids. Received: {checks.shown(names)}"
            )
        names = iter(names)
        last = len(row) - int(real[::-1].argmax()) if real.any() else 0
        rows.append([token_text(next(names)) if s else "" for s in real[:last]])
    return rows


def _given(tokens, ids):
    rows, length = ids.shape[:2]
    if not is_list(tokens):
        raise ValueError(
            "`tokens` must be None, a callable, a list of lists of names, or a "
            f"pair of these. Received: tokens of type {type(tokens).__name__}"
        )
    sizes = [len(row) if is_list(row) else row for row in tokens]
    fits = len(tokens) == rows and all(
        is_list(row) and len(row) <= length for row in tokens
    )
    if not fits:
        raise ValueError(
            f"`tokens` must be a list of at most {length} names for each of "
            f"{rows} rows. Received: {len(tokens)} rows, of {sizes} names"
        )
    return [[token_text(name) for name in row] for row in tokens]
