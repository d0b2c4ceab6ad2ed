"""Random numbers that are the same on every platform and version."""

import random
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from keras_attn.typing import Tensor, TensorLike


class StableRandom:
    """Draws random numbers that depend on the seed alone.

    NumPy and Python may change the algorithms of most of their methods in a
    new version. They promise the same stream for `random.Random.random` and for
    the bits of PCG64, from which everything here is computed.

    Args:
        seed: int >= 0.
        *keys: ints >= 0, which select one of many independent streams.
    """

    def __init__(self, seed: int, *keys: Any) -> None:
        sequence = np.random.SeedSequence([seed, *keys])
        bits, number = sequence.spawn(2)
        state = "".join(f"{word:08x}" for word in number.generate_state(8))
        self.random: Callable[[], float] = random.Random(int(state, 16)).random
        self._generator = np.random.Generator(np.random.PCG64(bits))

    def happens(self, probability: float) -> Any:
        """Returns True with a probability."""
        return self.random() < probability

    def integer(self, stop: Any) -> int:
        """Returns an int in [0, stop)."""
        return int(self.random() * stop)

    def between(self, low: Any, high: Any) -> float:
        """Returns a float in [low, high)."""
        return low + (high - low) * self.random()

    def choice(
        self, options: Sequence[Any], weights: TensorLike | None = None
    ) -> Any:
        """Returns one item of a sequence; `weights` need not sum to 1."""
        if weights is None:
            return options[self.integer(len(options))]
        left = self.random() * sum(weights)
        for option, weight in zip(options, weights, strict=True):
            left -= weight
            if left < 0:
                return option
        return options[-1]

    def sample(self, options: Sequence[Any], count: int) -> list[Any]:
        """Returns a list of `count` different items of a sequence."""
        items = list(options)
        for place in range(count):
            other = place + self.integer(len(items) - place)
            items[place], items[other] = items[other], items[place]
        return items[:count]

    def shuffle(self, items: Any) -> None:
        """Shuffles a list in place."""
        items[:] = self.sample(items, len(items))

    def integers(self, stop: Any, size: Any, start: int = 0) -> Tensor:
        """Returns an int64 array of integers in [start, stop)."""
        return self._generator.integers(start, stop, size)

    def uniform(self, size: Any, low: float = 0.0, high: float = 1.0) -> Tensor:
        """Returns a float64 array of numbers in [low, high)."""
        bits = self._generator.integers(0, 2**53, size)
        return low + (high - low) * (bits / 2**53)

    def normal(self, size: Any) -> Tensor:
        """Returns a float64 array with mean 0 and standard deviation 1.

        Each number is a sum of twelve uniform ones, exact on every platform,
        and so at most 6 from the mean.
        """
        shape = (size,) if isinstance(size, int) else tuple(size)
        total = np.zeros(shape, "int64")
        for _ in range(12):
            total += self._generator.integers(0, 2**32, shape)
        return total / 2**32 - 6.0

    def order(self, count: int) -> Any:
        """Returns an int64 permutation of `count` indices."""
        return self.uniform((count,)).argsort(kind="stable")
