"""One seed for all dropout of a scope, so that it can be drawn again."""

import contextlib
import threading

import keras
from keras import ops

_state = threading.local()
# Odd, its bits far apart: the seeds of two layers share nothing.
_STRIDE = 0x61C88647


@contextlib.contextmanager
def dropout_seed(seed):
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

    Examples:
        >>> block = keras_attn.layers.EncoderBlock(2, 16, dropout=0.1)
        >>> x = keras.random.normal((2, 5, 8), seed=0)
        >>> block.build(x.shape)
        >>> def run(x, seed):
        ...     with keras_attn.layers.dropout_seed(seed):
        ...         return block(x, training=True)
        >>> seeds = keras.random.SeedGenerator(1)
        >>> tuple(keras.remat(run)(x, seeds.next()).shape)
        (2, 5, 8)
    """
    outer = getattr(_state, "scope", None)
    # The count starts anew with every run of what is computed twice.
    _state.scope = [seed, 0]
    try:
        yield
    finally:
        _state.scope = outer


def seed_is_given():
    """Says whether a `dropout_seed` scope is open."""
    return getattr(_state, "scope", None) is not None


class DropoutSeeds(keras.random.SeedGenerator):
    """A seed generator that obeys `dropout_seed`."""

    def next(self, ordered=True):
        """Returns the next seed: that of the scope, or its own."""
        scope = getattr(_state, "scope", None)
        if scope is None:
            return super().next(ordered)
        seed, count = scope
        scope[1] += 1
        seed = ops.convert_to_tensor(seed)
        step = ops.convert_to_tensor([0, count * _STRIDE % (1 << 31)])
        return ops.add(seed, ops.cast(step, seed.dtype))
