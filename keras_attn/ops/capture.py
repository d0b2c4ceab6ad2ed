"""Captures attention weights without returning them from every layer."""

import contextlib
import re
import threading
from collections.abc import Iterator, Sequence
from typing import Any

from keras_attn import checks
from keras_attn.typing import Tensor, TensorLike


class _State(threading.local):
    """The open scopes of a thread."""

    def __init__(self):
        # If the first call created it, `torch.compile` would trace models
        # again.
        self.scopes = []


_state = _State()


@contextlib.contextmanager
def capture_weights(
    layers: str | Sequence[str] | None = None,
    vectors: dict[str, Any] | None = None,
) -> Iterator[dict[tuple[str, int], Tensor]]:
    """Captures the attention weights of layers called inside the scope.

    Captured layers use the plain kernel, the only one that materializes the
    weights; other layers run as usual. To capture inside a compiled function,
    open the scope inside the function and return the captured weights as
    outputs: a scope around a compiled call would leak tracers.

    Args:
        layers: str or list of str. Regular expressions; a layer is captured if
            one of them is found in its path. Default None: all layers.
        vectors: dict that is filled as well, for the layers whose scores are
            dot products: (layer path, call number) -> the queries, float
            (B, T, N, H), and the keys, float (B, S, K, H), as they are
            multiplied: after an attention position has rotated them. Default
            None: they are not captured.

    Yields:
        A dict that is filled as layers run: (layer path, call number) -> float
        (B, N, T, S) weights. Call numbers count from 0 per layer.

    Raises:
        ValueError: `vectors` is no dict.
        RuntimeError: if decoding runs inside the scope, because the weights of
            a loop's steps cannot leave the loop (to explain a generated
            sequence, capture one teacher-forced pass), or if a captured layer
            runs under `keras.RematScope`.

    Examples:
        >>> layer = keras_attn.layers.MultiHeadAttention(2, 4, name="look")
        >>> x = keras.random.normal((1, 3, 8), seed=0)
        >>> with keras_attn.ops.capture_weights() as captured:
        ...     y = layer(x, x)
        >>> [(path, tuple(w.shape)) for (path, _), w in captured.items()]
        [('look', (1, 2, 3, 3))]
    """
    scopes = _state.scopes
    if vectors is not None:
        checks.instance("vectors", vectors, dict, "a dict")
    if layers is not None:
        if isinstance(layers, (str, re.Pattern)):
            layers = [layers]
        checks.instance(
            "layers",
            layers,
            (list, tuple, set, frozenset),
            "a pattern or a list of patterns",
        )
        layers = [checks.pattern("layers", pattern) for pattern in layers]
    scope = _Scope(layers, vectors)
    scopes.append(scope)
    try:
        yield scope.found
    finally:
        scopes.remove(scope)


class _Scope:
    """Captured weights of one scope, and the patterns of its layers."""

    def __init__(self, patterns, vectors):
        self.patterns = patterns
        self.vectors = vectors
        self.found = {}
        self.barred = None  # name of the enclosing code that forbids capture

    def wants(self, path):
        matches = self.patterns is None or path is None
        matches = matches or any(p.search(path) for p in self.patterns)
        if matches and self.barred:
            raise RuntimeError(
                f"Attention weights cannot be captured inside {self.barred}."
            )
        return matches


def capturing(path: str | None = None) -> bool:
    """Returns whether an open scope captures weights.

    Args:
        path: str. Path of a layer; default None: any layer.

    Returns:
        bool.

    Examples:
        >>> with keras_attn.ops.capture_weights():
        ...     keras_attn.ops.capture.capturing()
        True
        >>> with keras_attn.ops.capture_weights("cross_attention$"):
        ...     keras_attn.ops.capture.capturing("block_0/self_attention")
        False
    """
    return any(scope.wants(path) for scope in _state.scopes)


def record(
    path: str, weights: TensorLike, vectors: tuple[Any, Any] | None = None
) -> None:
    """Records one call's weights in every open scope that captures the layer.

    Args:
        path: str. Path of the layer.
        weights: float (B, N, T, S).
        vectors: pair of queries, float (B, T, N, H), and keys, float
            (B, S, K, H). Default None: the scores are no dot products.

    Examples:
        >>> with keras_attn.ops.capture_weights() as captured:
        ...     keras_attn.ops.capture.record("mine", keras.ops.ones((1, 1, 2,
        ...     2)))
        >>> list(captured)
        [('mine', 0)]
    """
    for scope in _state.scopes:
        if scope.wants(path):
            number = sum(1 for known, _ in scope.found if known == path)
            scope.found[path, number] = weights
            if vectors is not None and scope.vectors is not None:
                scope.vectors[path, number] = vectors


def refuse_capture(what: str) -> None:
    """Raises an error if a scope is open.

    Args:
        what: str. Name of the code that cannot run inside a scope.

    Raises:
        RuntimeError: if a scope is open.

    Examples:
        >>> keras_attn.ops.capture.refuse_capture("a loop")  # no scope is open
    """
    if capturing():
        raise RuntimeError(
            f"Attention weights cannot be captured inside {what}: run it first "
            "and capture one teacher-forced pass over its result."
        )


@contextlib.contextmanager
def forbid_capture(what: str) -> Iterator[None]:
    """Prevents enclosing scopes from capturing the code inside.

    Args:
        what: str. Name of the code that weights cannot leave.

    Raises:
        RuntimeError: if a layer runs inside that an enclosing scope captures.

    Examples:
        >>> with keras_attn.ops.capture.forbid_capture("a loop"):
        ...     keras_attn.ops.capture.capturing()
        False
    """
    scopes = list(_state.scopes)
    before = [scope.barred for scope in scopes]
    for scope in scopes:
        scope.barred = what
    try:
        yield
    finally:
        for scope, barred in zip(scopes, before, strict=True):
            scope.barred = barred
