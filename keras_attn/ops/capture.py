"""Collecting attention weights without passing them through every layer."""

import contextlib
import threading

_state = threading.local()


@contextlib.contextmanager
def capture_weights():
    """Collects the weights of every attention that runs inside the scope.

    Inside the scope each attention layer takes the plain kernel, which is the
    one that holds weights. Where a function is compiled, open the scope inside
    that function and return what was collected among its outputs: a scope
    around a compiled call would leak its tracers.

    Yields:
        A dict that fills up as layers run: (layer path, call number) -> float
        (B, N, T, S) weights. The call number counts the calls of one layer
        from 0.

    Raises:
        RuntimeError: where decoding runs inside the scope: the weights of a
            loop's steps cannot leave it. Explain a generated sequence by one
            teacher-forced pass instead.

    Examples:
        >>> layer = keras_attn.layers.MultiHeadAttention(2, 4, name="look")
        >>> x = keras.random.normal((1, 3, 8), seed=0)
        >>> with keras_attn.ops.capture_weights() as captured:
        ...     y = layer(x, x)
        >>> [(path, tuple(w.shape)) for (path, _), w in captured.items()]
        [('look', (1, 2, 3, 3))]
    """
    scopes = _scopes()
    captured = {}
    scopes.append(captured)
    try:
        yield captured
    finally:
        # Not `remove`: nested scopes hold equal dicts.
        scopes[:] = [scope for scope in scopes if scope is not captured]


def capturing():
    """Says whether some scope is collecting weights.

    Returns:
        bool.

    Examples:
        >>> with keras_attn.ops.capture_weights():
        ...     keras_attn.ops.capturing()
        True
    """
    return bool(_scopes())


def record(path, weights):
    """Hands one call's weights to every open scope.

    Args:
        path: str. Path of the layer.
        weights: float (B, N, T, S).

    Examples:
        >>> with keras_attn.ops.capture_weights() as captured:
        ...     keras_attn.ops.record("mine", keras.ops.ones((1, 1, 2, 2)))
        >>> list(captured)
        [('mine', 0)]
    """
    for captured in _scopes():
        number = sum(1 for known, _ in captured if known == path)
        captured[path, number] = weights


def refuse_capture(what):
    """Refuses to go on where a scope is open.

    Args:
        what: str. What cannot run inside a scope.

    Raises:
        RuntimeError: a scope is open.

    Examples:
        >>> keras_attn.ops.refuse_capture("a loop")  # no scope is open
    """
    if capturing():
        raise RuntimeError(
            f"Attention weights cannot be captured inside {what}: run it first "
            "and capture one teacher-forced pass over its result."
        )


def _scopes():
    if not hasattr(_state, "scopes"):
        _state.scopes = []
    return _state.scopes
