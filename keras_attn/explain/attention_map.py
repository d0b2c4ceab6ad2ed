"""AttentionMap: the attention weights of one call of a layer."""

from typing import Any, NamedTuple

import numpy as np

from keras_attn import checks
from keras_attn.explain.arguments import index, is_list, number_array
from keras_attn.typing import Tensor


class AttentionMap(NamedTuple):
    """Attention weights of one call of a layer.

    Args:
        layer: str. The path of the layer, such as
            `"decoder_block_0/cross_attention"`.
        call: int. The number of the call, from 0. XLNet's layers are called
            twice: for the content stream, then for the query stream.
        heads: tuple of int. The indices of the N heads.
        weights: float32 (B, N, T, S).
        query_tokens: list of B lists of at most T str, or None.
        key_tokens: list of B lists of at most S str, or None.
        queries: float32 (B, N, T, H), or None: the vectors whose scaled dot
            products are the scores, apart from the bias of a position.
        keys: float32 (B, N, S, H), or None. Heads that share keys have the
            same ones.

    Examples:
        >>> found = keras_attn.explain.AttentionMap(
        ...     "attention", 0, (0,), np.ones((1, 1, 2, 3)) / 3,
        ...     [["a", "b"]], [["x", "y"]])
        >>> weights, queries, keys = found.of(0)
        >>> weights.shape, queries, keys
        ((1, 2, 2), ['a', 'b'], ['x', 'y'])
    """

    layer: str
    call: int
    heads: tuple[int, ...]
    weights: Any
    query_tokens: list[list[str]] | None = None
    key_tokens: list[list[str]] | None = None
    queries: Any = None
    keys: Any = None

    def of(self, row: int) -> tuple[Tensor, Any, Any]:
        """Returns one row, for `plot_attention`.

        Args:
            row: int in [0, B).

        Returns:
            Float32 (N, t, s), and the query and key tokens, or None; where
            there are tokens, the weights are cropped to them.

        Raises:
            ValueError: `row` is out of range.
        """
        rows = len(self.weights)
        row = index("row", row, rows, "the rows of the map")
        weights = self.weights[row]
        queries, keys = (
            None if tokens is None else tokens[row]
            for tokens in (self.query_tokens, self.key_tokens)
        )
        if queries is not None:
            weights = weights[:, : len(queries)]
        if keys is not None:
            weights = weights[:, :, : len(keys)]
        return weights, queries, keys


def checked_map(name: str, one: AttentionMap) -> AttentionMap:
    """Checks the fields of an `AttentionMap`.

    Args:
        name: str. Name of the argument, for error messages.
        one: `AttentionMap`.

    Returns:
        The map, with NumPy weights, int head indices and str tokens.

    Raises:
        ValueError: weights of another rank, negative or not finite; another
            number of heads; or tokens, queries or keys that do not fit the
            weights.
    """
    weights = attention_weights(name, one)
    rows, heads, queries, keys = weights.shape
    numbered = np.asarray(one.heads)
    if numbered.shape != (heads,) or numbered.dtype.kind not in "iu":
        raise ValueError(
            f"`{name}` must have an index for each of {heads} heads. "
            f"Received: heads={checks.shown(one.heads)}"
        )
    return AttentionMap(
        checks.string("layer", one.layer),
        checks.integer("call", one.call, least=0),
        tuple(numbered.tolist()),
        weights,
        _tokens("query_tokens", one.query_tokens, rows, queries),
        _tokens("key_tokens", one.key_tokens, rows, keys),
        *_vectors(one, rows, heads, queries, keys),
    )


def checked_maps(maps: Any) -> list[Any]:
    """Returns a list of checked `AttentionMap`, at least one.

    Raises:
        ValueError: another type, no maps, or a map that `checked_map` rejects.
    """
    if not isinstance(maps, (list, tuple)) or isinstance(maps, AttentionMap):
        raise ValueError(
            "`maps` must be a list of `AttentionMap`. "
            f"Received: maps of type {type(maps).__name__}"
        )
    if not maps:
        raise ValueError("`maps` must not be empty. Received: maps=[]")
    for one in maps:
        if not isinstance(one, AttentionMap):
            raise ValueError(
                "`maps` must be a list of `AttentionMap`. "
                f"Received: an item of type {type(one).__name__}"
            )
    return [checked_map("maps", one) for one in maps]


def attention_weights(name: str, one: AttentionMap) -> Tensor:
    """Returns the weights of an `AttentionMap` or array, as a NumPy array.

    Args:
        name: str. Name of the argument, for error messages.
        one: `AttentionMap`, or float (B, N, T, S).

    Returns:
        Float (B, N, T, S).

    Raises:
        ValueError: weights of another rank, below 0, or not finite.
    """
    weights = one.weights if isinstance(one, AttentionMap) else one
    weights = number_array(name, weights, "weights of shape (B, N, T, S)")
    if weights.ndim != 4:
        raise ValueError(
            f"`{name}` must be weights of shape (B, N, T, S). "
            f"Received: shape {weights.shape}"
        )
    if not (np.isfinite(weights).all() and (weights >= 0).all()):
        raise ValueError(
            f"`{name}` must be finite and not negative (weights come after the "
            "softmax, scores before it). Received: values from "
            f"{weights.min()} to {weights.max()}"
        )
    return weights


def token_text(token: Any) -> str:
    """Returns the name of a token as text that can be written to a file."""
    if isinstance(token, bytes):
        token = token.decode("utf-8", "replace")
    # A lone surrogate has no encoding.
    return str(token).encode("utf-8", "replace").decode("utf-8")


def _vectors(one, rows, heads, queries, keys):
    if one.queries is None and one.keys is None:
        return None, None
    found = []
    for name, length in (("queries", queries), ("keys", keys)):
        value = getattr(one, name)
        if value is None:
            raise ValueError(
                "`queries` and `keys` must both be given, or neither. "
                f"Received: {name}=None"
            )
        vectors = number_array(name, value, "vectors of shape (B, N, L, H)")
        fits = vectors.ndim == 4 and vectors.shape[3] > 0
        if not fits or vectors.shape[:3] != (rows, heads, length):
            raise ValueError(
                f"`{name}` must be vectors of shape "
                f"({rows}, {heads}, {length}, H), to fit the weights. "
                f"Received: shape {vectors.shape}"
            )
        if not np.isfinite(vectors).all():
            raise ValueError(
                f"`{name}` must be finite. Received: {name} with NaN or inf"
            )
        found.append(vectors)
    if found[0].shape[3] != found[1].shape[3]:
        raise ValueError(
            "`keys` must have the width of `queries`. "
            f"Received: widths {found[1].shape[3]} and {found[0].shape[3]}"
        )
    return found


def _tokens(name, tokens, rows, length):
    if tokens is None:
        return None
    fits = (
        is_list(tokens)
        and len(tokens) == rows
        and all(is_list(row) and len(row) <= length for row in tokens)
    )
    if not fits:
        received = f"of type {type(tokens).__name__}"
        if is_list(tokens):
            sizes = [len(row) if is_list(row) else row for row in tokens]
            received = f"for {len(tokens)} rows, of lengths {sizes}"
        raise ValueError(
            f"`{name}` must be lists of at most {length} tokens for each of "
            f"{rows} rows, or None. Received: {name} {received}"
        )
    return [[token_text(token) for token in row] for row in tokens]
