"""T5 relative position bias."""

import bisect
import dataclasses
from typing import Any

import keras
from keras import ops

from keras_attn import checks
from keras_attn.layers.attention_position import AttentionPosition
from keras_attn.ops import PositionBias
from keras_attn.typing import Initializer

# A table of the distances is computed in every call.
_FARTHEST = 2**20
# Borders are powers with an exponent of the number of buckets.
_MOST_BUCKETS = 2**10


@keras.saving.register_keras_serializable(package="keras_attn")
class T5Position(AttentionPosition):
    """Learned relative position bias per bucket of distances and head (T5).

        bias[n, t, s] = table[bucket(p_s - p_t), n]
        bucket(d) = d,                                            d < E
        bucket(d) = min(E + floor((M - E) log(d / E) / log(X / E)), M - 1)

    Raffel et al. 2020, sec. 2.1, https://arxiv.org/abs/1910.10683. X is
    `max_distance`; distances below E = M / 2 have one bucket each. If
    bidirectional, half of the buckets are for keys before the query and half
    for keys after it (M = `num_buckets` / 2 each). Otherwise, all are for keys
    before it (M = `num_buckets`), and keys after it share bucket 0.

    To share one table between layers, as in T5, pass them the same object.

    Args:
        num_heads: int >= 1. N of the attention layer.
        num_buckets: int from 2 to 1,024, or an even int >= 4 if bidirectional.
        max_distance: int > E, at most 1,048,576. All larger distances share a
            bucket with it.
        bidirectional: bool. True for encoders, False for causal attention.
        initializer: initializer of the table.
        **kwargs: arguments of `keras.layers.Layer`: `name`, `dtype`, ...

    Raises:
        ValueError: an argument is out of range, or `num_heads` differs from
            that of the attention layer.

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
        num_heads: int,
        num_buckets: int = 32,
        max_distance: int = 128,
        bidirectional: bool = True,
        initializer: Initializer = "uniform",
        **kwargs: Any,
    ) -> None:
        checks.positive_int("num_heads", num_heads)
        checks.integer("num_buckets", num_buckets, 1, _MOST_BUCKETS)
        checks.integer("max_distance", max_distance, 1, _FARTHEST)
        checks.boolean("bidirectional", bidirectional)
        if num_buckets < 2 or (
            bidirectional and (num_buckets < 4 or num_buckets % 2)
        ):
            raise ValueError(
                "`num_buckets` must be at least 2, or an even number >= 4 if "
                "`bidirectional` is True. "
                f"Received: num_buckets={num_buckets}"
            )
        exact = num_buckets // (4 if bidirectional else 2)
        if max_distance <= exact:
            raise ValueError(
                f"`max_distance` must be more than {exact}, the number of "
                "distances with their own bucket. "
                f"Received: max_distance={max_distance}"
            )
        super().__init__(**kwargs)
        self.num_heads = num_heads
        self.num_buckets = num_buckets
        self.max_distance = max_distance
        self.bidirectional = bidirectional
        self.initializer: Initializer = keras.initializers.get(initializer)
        one_way = num_buckets // 2 if bidirectional else num_buckets
        self._borders = _borders(one_way, max_distance)
        # Not autocast, because it is added to float32 scores.
        self.table: keras.Variable = self.add_weight(
            shape=(num_buckets, num_heads),
            initializer=self.initializer,
            name="table",
            dtype="float32",
            autocast=False,
        )

    def check(self, num_heads: int, key_dim: int) -> None:
        """Raises ValueError if `num_heads` differs from the attention layer."""
        self._check_heads(num_heads)

    def bias(self) -> PositionBias:
        """Returns the `PositionBias`, with the table as its parameters."""
        buckets = _Buckets(self._borders, self.max_distance, self.bidirectional)
        return PositionBias(buckets, ops.convert_to_tensor(self.table))

    def get_config(self) -> dict[str, Any]:
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
    """Bias as a function that compares equal if its buckets are equal."""

    borders: tuple
    max_distance: int
    bidirectional: bool

    def __call__(self, table, query_positions, key_positions):
        far = self.max_distance
        gap = ops.subtract(
            ops.cast(key_positions, "int32")[:, None, :],
            ops.cast(query_positions, "int32")[:, :, None],
        )
        # One row per distance first, so that only one gather is large.
        rows = ops.take(table, self.of_distances(), axis=0)
        bias = ops.take(rows, ops.clip(gap, -far, far) + far, axis=0)
        return ops.transpose(bias, (0, 3, 1, 2))

    def of_distances(self):
        """Returns int32 buckets of distances -max_distance..max_distance."""
        far = self.max_distance
        distances = ops.arange(-far, far + 1, dtype="int32")
        after = distances > 0
        if not self.bidirectional:
            distances = ops.where(after, 0, distances)
        borders = ops.convert_to_tensor(self.borders, "int32")
        buckets = ops.searchsorted(borders, ops.abs(distances), side="right")
        buckets = ops.cast(buckets, "int32")
        if self.bidirectional:
            half = len(self.borders) + 1
            buckets = ops.where(after, buckets + half, buckets)
        return buckets


def _borders(count, far):
    """Computes the first distance of each bucket but the first, one way.

    Bucket E + j starts at the first d with (d / E)^(M - E) >= (X / E)^j.
    Computed in integers, because a logarithm may round to the wrong side if
    both are equal.
    """
    exact = count // 2
    wide = count - exact
    distances = range(exact, far + 1)
    powers = [far**step * exact ** (wide - step) for step in range(1, wide)]
    wider = (
        exact + bisect.bisect_left(distances, power, key=lambda d: d**wide)
        for power in powers
    )
    return (*range(1, exact + 1), *wider)
