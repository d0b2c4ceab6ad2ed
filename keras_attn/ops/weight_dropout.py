"""Reproducible dropout on attention weights, for blockwise kernels."""

import dataclasses
from typing import Any

from keras_attn import checks
from keras_attn.backend import seeded_dropout
from keras_attn.typing import TensorLike


@dataclasses.dataclass(frozen=True)
class WeightDropout:
    """Dropout on attention weights, deterministic for a given seed.

    A blockwise kernel computes a block's weights twice, for the output and for
    the gradient, and must drop the same ones both times.

    Args:
        rate: float in (0, 1). Probability that a weight is dropped.
        seed: int (2,), from `keras.random.SeedGenerator.next()`; or None on
            PyTorch to use its own generator.

    Raises:
        ValueError: if the rate is out of range.

    Examples:
        >>> seed = keras.random.SeedGenerator(1).next()
        >>> dropout = keras_attn.ops.WeightDropout(0.5, seed)
        >>> weights = dropout(keras.ops.ones((1, 1, 8, 8)))
        >>> sorted(set(keras.ops.convert_to_numpy(weights).ravel().tolist()))
        [0.0, 2.0]
    """

    rate: float
    seed: Any

    def __post_init__(self) -> None:
        checks.real("rate", self.rate)
        if not 0 < self.rate < 1:
            raise ValueError(
                "`rate` must be between 0 and 1, exclusive. "
                f"Received: rate={self.rate}"
            )

    def __call__(self, weights: TensorLike) -> Any:
        """Applies dropout to the weights.

        Args:
            weights: float (B, N, T, S).

        Returns:
            Float (B, N, T, S): 0, or the weight scaled up by the inverse of the
            keep probability.
        """
        return seeded_dropout(weights, self.rate, self.seed)
