"""Location-based score, computed from the query only."""

from typing import Any

from keras import ops

from keras_attn import checks
from keras_attn.backend import concrete, known_size, take_along_axis
from keras_attn.layers.scores.score import Score, projected
from keras_attn.typing import Shape, Tensor, TensorLike


class LocationScore(Score):
    """score[s] = (q W)[p_s] (Luong et al. 2015, sec. 3.1, eq. 8).

    W has one column per position; the keys are not used. As in the paper,
    shorter sequences use the first columns. Column p scores the key at position
    p, so padding does not shift the columns.

    Args:
        max_sequence_length: int >= 1. Columns of W, in tokens. Default: the
            number of keys at build time.
        **kwargs: arguments of `Score`.
    """

    def __init__(
        self, max_sequence_length: int | None = None, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        self.max_sequence_length = max_sequence_length

    def build(self, query_shape: Shape, key_shape: Shape) -> None:
        """Creates W (D, max_sequence_length)."""
        self._columns = self.max_sequence_length or key_shape[1]
        if self._columns is None:
            raise ValueError(
                "`max_sequence_length` must be given for the score 'location' "
                "if the number of keys is unknown. "
                "Received: max_sequence_length=None, key of shape "
                f"{tuple(key_shape)}"
            )
        self._query_dense = self._dense(
            "query",
            query_shape[-1],
            checks.positive_int("max_sequence_length", self._columns),
            use_bias=False,
        )

    def call(
        self,
        query: TensorLike,
        key: TensorLike,
        key_positions: TensorLike | None = None,
    ) -> Tensor:
        """Returns the scores, float32 (B, T, S)."""
        self._check(key.shape[1], "key")
        table = projected(self._query_dense, query)
        keys = ops.shape(key)[1]
        if key_positions is None:
            return table[:, :, :keys]
        known = concrete(key_positions)
        if known is not None:
            self._check(int(known.max(initial=-1)) + 1, "key_positions")
        batch, queries, _ = ops.shape(table)
        # Keys at position -1 are masked later. Positions past the table, which
        # cannot be checked in a compiled function, use the last column.
        columns = ops.clip(key_positions, 0, self._columns - 1)
        columns = ops.broadcast_to(columns[:, None], (batch, queries, keys))
        return take_along_axis(table, columns)

    def _check(self, length, name):
        if (known_size(length) or 0) > self._columns:
            raise ValueError(
                f"`{name}` must have at most max_sequence_length="
                f"{self._columns} positions for the score 'location'. "
                f"Received: {length}"
            )
