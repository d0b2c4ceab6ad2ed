"""Names of the tokens along both axes of a layer's weights."""

import keras
import numpy as np


class TokenNames:
    """Finds the names of a layer's queries and keys.

    Args:
        tokens: None; a callable of a list of ids that returns their names, or
            a list of B lists of str; or a pair of either, for models that read
            a source and a target.
        inputs: what the model is called with.
        pad_id: int or None. The id that is no token.
    """

    def __init__(self, tokens, inputs, pad_id):
        pair = isinstance(inputs, tuple | list) and len(inputs) == 2
        if not isinstance(tokens, tuple):
            tokens = (tokens, tokens) if pair else (tokens,)
        if len(tokens) != (2 if pair else 1):
            raise ValueError(
                "`tokens` must be a pair where the model reads a source and a "
                f"target, and only there. Received: {len(tokens)}"
            )
        sides = list(inputs) if pair else [inputs]
        sides = [
            side["token_ids"] if isinstance(side, dict) else side
            for side in sides
        ]
        sides = [keras.ops.convert_to_numpy(side) for side in sides]
        self._names = [
            _named(names, ids, pad_id)
            for names, ids in zip(tokens, sides, strict=True)
        ]
        self._lengths = [side.shape[1] for side in sides]

    def of(self, path, call, shape):
        """Returns the names of a layer's queries and keys, each may be None.

        Args:
            path: str. The path of the layer.
            call: int. The number of its call.
            shape: tuple, of its weights, (B, N, T, S).
        """
        query_side = key_side = -1
        if path.startswith("encoder"):
            query_side = key_side = 0
        elif path.endswith("cross_attention") or path == "decoder/attention":
            key_side = 0
        # The guesses of an XLNet are asked for some tokens only.
        queries = None if call else self._names[query_side]
        keys = self._names[key_side]
        before = shape[3] - self._lengths[key_side]
        if keys is not None and before:
            # What is remembered of earlier segments stands in front.
            keys = [[""] * before + row for row in keys]
        return queries, keys


def _named(tokens, ids, pad_id):
    """Returns a name for each place of each row up to its last token."""
    if tokens is None:
        return None
    there = np.ones(ids.shape[:2], bool) if pad_id is None else ids != pad_id
    if not callable(tokens):
        return _given(tokens, ids)
    rows = []
    for row, seen in zip(ids, there, strict=True):
        names = iter(tokens([int(i) for i in row[seen]]))
        last = len(row) - int(seen[::-1].argmax()) if seen.any() else 0
        rows.append([str(next(names)) if s else "" for s in seen[:last]])
    return rows


def _given(tokens, ids):
    rows, length = ids.shape[:2]
    fits = len(tokens) == rows and not any(
        isinstance(row, str) or len(row) > length for row in tokens
    )
    if not fits:
        raise ValueError(
            f"`tokens` must be a list of at most {length} names for each of "
            f"{rows} rows. Received: {[len(row) for row in tokens]} names"
        )
    return [[str(name) for name in row] for row in tokens]
