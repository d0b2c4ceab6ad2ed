"""Collecting attention weights without passing them through every layer."""

import contextlib
import re
import threading

_state = threading.local()


@contextlib.contextmanager
def capture_weights(layers=None):
    """Collects the weights of the attention that runs inside the scope.

    Inside the scope these layers take the plain kernel, which is the one that
    holds weights; others run as ever. Where a function is compiled, open the
    scope inside that function and return what was collected among its outputs:
    a scope around a compiled call would leak its tracers.

    Args:
        layers: str or list of str. Regular expressions, of which one is found
            in the path of a layer that is collected. Default None: all are.

    Yields:
        A dict that fills up as layers run: (layer path, call number) -> float
        (B, N, T, S) weights. The call number counts the calls of one layer
        from 0.

    Raises:
        RuntimeError: where decoding runs inside the scope: the weights of a
            loop's steps cannot leave it. Explain a generated sequence by one
            teacher-forced pass instead. Likewise where a layer that is
            collected runs under `keras.RematScope`.

    Examples:
        >>> layer = keras_attn.layers.MultiHeadAttention(2, 4, name="look")
        >>> x = keras.random.normal((1, 3, 8), seed=0)
        >>> with keras_attn.ops.capture_weights() as captured:
        ...     y = layer(x, x)
        >>> [(path, tuple(w.shape)) for (path, _), w in captured.items()]
        [('look', (1, 2, 3, 3))]
    """
    scopes = _scopes()
    if layers is not None:
        layers = [layers] if isinstance(layers, str) else list(layers)
        layers = [re.compile(pattern) for pattern in layers]
    scope = _Scope(layers)
    scopes.append(scope)
    try:
        yield scope.found
    finally:
        scopes.remove(scope)


class _Scope:
    """What one scope collects, and of which layers."""

    def __init__(self, patterns):
        self.patterns = patterns
        self.found = {}
        self.barred = None  # what nothing may leave

    def wants(self, path):
        wanted = self.patterns is None or path is None
        wanted = wanted or any(p.search(path) for p in self.patterns)
        if wanted and self.barred:
            raise RuntimeError(
                f"Attention weights cannot be captured inside {self.barred}."
            )
        return wanted


def capturing(path=None):
    """Says whether some scope is collecting weights.

    Args:
        path: str. Those of the layer with this path; default None: of some
            layer.

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
    return any(scope.wants(path) for scope in _scopes())


def record(path, weights):
    """Hands one call's weights to every open scope that wants them.

    Args:
        path: str. Path of the layer.
        weights: float (B, N, T, S).

    Examples:
        >>> with keras_attn.ops.capture_weights() as captured:
        ...     keras_attn.ops.capture.record("mine", keras.ops.ones((1, 1, 2,
        ...     2)))
        >>> list(captured)
        [('mine', 0)]
    """
    for scope in _scopes():
        if scope.wants(path):
            number = sum(1 for known, _ in scope.found if known == path)
            scope.found[path, number] = weights


def refuse_capture(what):
    """Refuses to go on where a scope is open.

    Args:
        what: str. What cannot run inside a scope.

    Raises:
        RuntimeError: a scope is open.

    Examples:
        >>> keras_attn.ops.capture.refuse_capture("a loop")  # no scope is open
    """
    if capturing():
        raise RuntimeError(
            f"Attention weights cannot be captured inside {what}: run it first "
            "and capture one teacher-forced pass over its result."
        )


@contextlib.contextmanager
def forbid_capture(what):
    """Lets no weights out of what runs inside, to any scope around it.

    Args:
        what: str. What cannot be left.

    Raises:
        RuntimeError: a layer runs inside that a scope around it collects.

    Examples:
        >>> with keras_attn.ops.capture.forbid_capture("a loop"):
        ...     keras_attn.ops.capture.capturing()
        False
    """
    scopes = list(_scopes())
    before = [scope.barred for scope in scopes]
    for scope in scopes:
        scope.barred = what
    try:
        yield
    finally:
        for scope, barred in zip(scopes, before, strict=True):
            scope.barred = barred


def _scopes():
    if not hasattr(_state, "scopes"):
        _state.scopes = []
    return _state.scopes
