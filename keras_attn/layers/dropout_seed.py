"""A shared, reproducible seed for all dropout in a scope."""

import contextlib
import threading
from collections.abc import Iterator
from typing import Any

import keras
from keras import ops

from keras_attn.backend import advance_seed, is_torch_program
from keras_attn.typing import Tensor


class _State(threading.local):
    """The open scope of a thread, or None."""

    def __init__(self):
        self.scope = None


_state = _State()
# Odd, with well-spread bits, so that the seeds of layers are unrelated.
_STRIDE = 0x61C88647
_PERIOD = 1 << 31


class _Scope:
    def __init__(self, seed, depth):
        self.seed = seed
        self.depth = depth
        self.count = 0

    def next(self):
        seed = ops.convert_to_tensor(self.seed)
        # Nested scopes use different strides, or the second seed of the inner
        # scope would be the next seed of the outer one.
        step = self.count * pow(_STRIDE, self.depth, _PERIOD) % _PERIOD
        step = ops.convert_to_tensor([0, step])
        self.count += 1
        return ops.add(seed, ops.cast(step, seed.dtype))


@contextlib.contextmanager
def dropout_seed(seed: Any, depth: int = 1) -> Iterator[None]:
    """Derives the seeds of all dropout layers in the scope from `seed`.

    `keras.remat` runs a function twice. If a layer draws its own seed, the
    second run uses a different dropout mask, and the gradients are silently
    wrong. Draw the seed outside, pass it as an argument, and open this scope
    inside: all layers of this library then use the same mask in both runs.
    (Blocks, `MultiHeadAttention` and `FeedForward` do this automatically if
    they are created under a `keras.RematScope`.) Implicit masks are lost in
    `keras.remat` too: pass them as arguments.

    Args:
        seed: int (2,), from `keras.random.SeedGenerator.next()`.
        depth: int >= 1. If `seed` comes from another such scope: one more than
            its depth, determined outside of the rematerialized function,
            because the outer scope may be closed in the second run. Default 1.

    Examples:
        >>> block = keras_attn.blocks.EncoderBlock(
        ...     num_heads=2, intermediate_dim=16, dropout=0.1)
        >>> x = keras.random.normal((2, 5, 8), seed=0)
        >>> block.build(x.shape)
        >>> def run(x, seed):
        ...     with keras_attn.layers.dropout_seed.dropout_seed(seed):
        ...         return block(x, training=True)
        >>> seeds = keras.random.SeedGenerator(1)
        >>> tuple(keras.remat(run)(x, seeds.next()).shape)
        (2, 5, 8)
    """
    # Needed while `keras.remat` draws seeds twice, as of Keras 3.15.1.
    outer = _state.scope
    # The count restarts in every run of a rematerialized function.
    _state.scope = _Scope(seed, depth)
    try:
        yield
    finally:
        _state.scope = outer


def dropout_depth() -> int:
    """Returns the depth of the open `dropout_seed` scope, or 0."""
    scope = _state.scope
    return 0 if scope is None else scope.depth


class DropoutSeeds(keras.random.SeedGenerator):
    """Seed generator that respects `dropout_seed`."""

    def next(self, ordered: bool = True) -> Tensor:
        """Returns the next seed, from the scope if one is open."""
        scope = _state.scope
        if scope is None and is_torch_program():
            return advance_seed(self.state)
        if scope is None:
            return super().next(ordered)
        # JAX requires a seed of the generator's dtype (as of Keras 3.15.1).
        return ops.cast(scope.next(), self.state.dtype)
