"""Dropout on attention weights, for kernels that never hold all of them."""

import dataclasses
from typing import Any

from keras_attn.backend import seeded_dropout


@dataclasses.dataclass(frozen=True)
class WeightDropout:
    """Says how to drop attention weights: the same ones for the same seed.

    A blockwise kernel computes a block's weights twice, for the output and for
    the gradient, and both times must drop the same.

    Args:
        rate: float in (0, 1). Probability that a weight is dropped.
        seed: int (2,), from `keras.random.SeedGenerator.next()`; or None on
            PyTorch: its own generator draws.

    Raises:
        ValueError: a rate out of range.

    Examples:
        >>> seed = keras.random.SeedGenerator(1).next()
        >>> dropout = keras_attn.ops.WeightDropout(0.5, seed)
        >>> weights = dropout(keras.ops.ones((1, 1, 8, 8)))
        >>> sorted(set(keras.ops.convert_to_numpy(weights).ravel().tolist()))
        [0.0, 2.0]
    """

    rate: float
    seed: Any

    def __post_init__(self):
        if not 0 < self.rate < 1:
            raise ValueError(
                "`rate` must lie between 0 and 1, both left out. "
                f"Received: rate={self.rate}"
            )

    def __call__(self, weights):
        """Drops some of all weights.

        Args:
            weights: float (B, N, T, S).

        Returns:
            Float (B, N, T, S): 0, or the weight over the share that is kept.
        """
        return seeded_dropout(weights, self.rate, self.seed)
