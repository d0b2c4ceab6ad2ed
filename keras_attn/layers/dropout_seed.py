"""One seed for all dropout of a scope, so that it can be drawn again."""

import contextlib
import threading

import keras
from keras import ops

_state = threading.local()
# Odd, its bits far apart: the seeds of two layers share nothing.
_STRIDE = 0x61C88647
_PERIOD = 1 << 31


class _Scope:
    def __init__(self, seed, depth):
        self.seed = seed
        self.depth = depth
        self.count = 0

    def next(self):
        seed = ops.convert_to_tensor(self.seed)
        # A scope in a scope takes steps of its own length, or the second seed
        # it hands out would be the next one of the scope around it.
        step = self.count * pow(_STRIDE, self.depth, _PERIOD) % _PERIOD
        step = ops.convert_to_tensor([0, step])
        self.count += 1
        return ops.add(seed, ops.cast(step, seed.dtype))


@contextlib.contextmanager
def dropout_seed(seed, depth=1):
    """Lets every dropout in the scope draw from one seed that is given.

    `keras.remat` computes twice, and where a layer draws its own seed, the
    second time drops something else than the first: the gradients are wrong,
    without a word. Draw the seed outside, pass it in as an argument, and open
    this scope inside: all layers of this library then drop the same both times.
    (Blocks, `MultiHeadAttention` and `FeedForward` do so by themselves where
    they are made under a `keras.RematScope`.) Implicit masks do not get
    through `keras.remat` either: pass them as arguments.

    Args:
        seed: int (2,), from `keras.random.SeedGenerator.next()`.
        depth: int >= 1. For a seed that another such scope handed out: one more
            than that scope's, found out outside of what is computed twice, for
            the second time no scope may be open around it. Default 1.

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
    outer = getattr(_state, "scope", None)
    # The count starts anew with every run of what is computed twice.
    _state.scope = _Scope(seed, depth)
    try:
        yield
    finally:
        _state.scope = outer


def dropout_depth():
    """Returns the depth of the open `dropout_seed` scope, 0 where none is."""
    scope = getattr(_state, "scope", None)
    return 0 if scope is None else scope.depth


class DropoutSeeds(keras.random.SeedGenerator):
    """A seed generator that obeys `dropout_seed`."""

    def next(self, ordered=True):
        """Returns the next seed: that of the scope, or its own."""
        scope = getattr(_state, "scope", None)
        if scope is None:
            return super().next(ordered)
        # JAX refuses a seed of another dtype than its own.
        return ops.cast(scope.next(), self.state.dtype)
