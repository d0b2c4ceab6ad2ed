"""T5's positions: a learned bias for each bucket of distances."""

import dataclasses
import functools

import keras
import numpy as np
from keras import ops

from keras_attn import checks
from keras_attn.layers.attention_position import AttentionPosition
from keras_attn.ops import PositionBias


@keras.saving.register_keras_serializable(package="keras_attn")
class T5Position(AttentionPosition):
    """Adds to each score a learned number for the distance, per head.

        bias[n, t, s] = table[bucket(p_s - p_t), n]
        bucket(d) = d,                                            d < E
        bucket(d) = min(E + floor((M - E) log(d / E) / log(X / E)), M - 1)

    Raffel et al. 2020, sec. 2.1, https://arxiv.org/abs/1910.10683. X is
    `max_distance`, E = M / 2 the distances that have a bucket of their own.
    Bidirectional, one half of the buckets is for keys before the query, one for
    keys behind it (M = `num_buckets` / 2 each); else all are for keys before
    it (M = `num_buckets`), and keys behind it share bucket 0.

    T5's layers share one table: hand the same object to all of them.

    Args:
        num_heads: int >= 1. N, that of the attention.
        num_buckets: int >= 2, or an even int >= 4 where bidirectional.
        max_distance: int > E. From here on all distances share a bucket.
        bidirectional: bool. True for encoders, False for causal attention.
        initializer: initializer of the table.
        **kwargs: arguments of `keras.layers.Layer`: `name`, `dtype`, ...

    Raises:
        ValueError: an argument out of range, or a `num_heads` that is not that
            of the attention.

    Examples:
        >>> position = keras_attn.layers.T5Position(num_heads=2)
        >>> layer = keras_attn.layers.MultiHeadAttention(
        ...     num_heads=2, key_dim=4, attention_position=position)
        >>> x = keras.random.normal((2, 5, 8), seed=0)
        >>> tuple(layer(x, x).shape), tuple(position.table.shape)
        ((2, 5, 8), (32, 2))
    """

    def __init__(
        self,
        num_heads,
        num_buckets=32,
        max_distance=128,
        bidirectional=True,
        initializer="uniform",
        **kwargs,
    ):
        checks.positive_int("num_heads", num_heads)
        checks.positive_int("num_buckets", num_buckets)
        checks.positive_int("max_distance", max_distance)
        if num_buckets < 2 or (
            bidirectional and (num_buckets < 4 or num_buckets % 2)
        ):
            raise ValueError(
                "`num_buckets` must be at least 2, and an even number from 4 "
                "on where `bidirectional` is True. "
                f"Received: num_buckets={num_buckets}"
            )
        exact = num_buckets // (4 if bidirectional else 2)
        if max_distance <= exact:
            raise ValueError(
                f"`max_distance` must be more than {exact}, the distances that "
                "have a bucket of their own. "
                f"Received: max_distance={max_distance}"
            )
        super().__init__(**kwargs)
        self.num_heads = num_heads
        self.num_buckets = num_buckets
        self.max_distance = max_distance
        self.bidirectional = bidirectional
        self.initializer = keras.initializers.get(initializer)
        # Not autocast: it is added to scores, which are float32.
        self.table = self.add_weight(
            shape=(num_buckets, num_heads),
            initializer=self.initializer,
            name="table",
            dtype="float32",
            autocast=False,
        )

    def check(self, num_heads, key_dim):
        """Raises ValueError where the attention has other heads."""
        self._check_heads(num_heads)

    def bias(self):
        """Returns the `PositionBias`, whose parameters are the table."""
        buckets = _Buckets(
            self.num_buckets, self.max_distance, self.bidirectional
        )
        return PositionBias(buckets, ops.convert_to_tensor(self.table))

    def get_config(self):
        """Returns the constructor's arguments."""
        return {
            **super().get_config(),
            "num_heads": self.num_heads,
            "num_buckets": self.num_buckets,
            "max_distance": self.max_distance,
            "bidirectional": self.bidirectional,
            "initializer": keras.initializers.serialize(self.initializer),
        }


@dataclasses.dataclass(frozen=True)
class _Buckets:
    """The bias as a function; equal buckets make equal functions."""

    num_buckets: int
    max_distance: int
    bidirectional: bool

    def __call__(self, table, query_positions, key_positions):
        far = self.max_distance
        gap = ops.subtract(
            ops.cast(key_positions, "int32")[:, None, :],
            ops.cast(query_positions, "int32")[:, :, None],
        )
        # One row a distance first: the large gather is then the only one.
        rows = ops.take(table, self.of_distances(), axis=0)
        bias = ops.take(rows, ops.clip(gap, -far, far) + far, axis=0)
        return ops.transpose(bias, (0, 3, 1, 2))

    def of_distances(self):
        """Buckets of the distances -max_distance ... max_distance, int32."""
        distances = np.arange(self.max_distance + 1)
        if self.bidirectional:
            half = self.num_buckets // 2
            sizes = _bucket(half, self.max_distance)
            before, behind = sizes[:0:-1], half + sizes[1:]
        else:
            sizes = _bucket(self.num_buckets, self.max_distance)
            before, behind = sizes[:0:-1], 0 * distances[1:]
        return np.concatenate([before, sizes[:1], behind]).astype("int32")


@functools.cache
def _bucket(count, far):
    """Buckets of the distances 0 ... `far`, all of one direction.

    The border of bucket E + j is the first d with
    (d / E)^(M - E) >= (X / E)^j. Whole numbers decide it: where the border is
    one, a logarithm would have to round to the right side.
    """
    exact = count // 2
    wide = count - exact
    buckets = np.minimum(np.arange(far + 1), exact)
    for step in range(1, wide):
        border = far**step * exact ** (wide - step)
        # Distances only grow, so the first one across the border decides.
        distance = exact
        while distance**wide < border:
            distance += 1
        buckets[distance:] = exact + step
    return buckets
