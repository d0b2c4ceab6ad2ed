"""Sampling with temperature, top-k and top-p."""

import random
from collections.abc import Iterable, Sequence
from typing import Any

import keras
import numpy as np
from keras import ops

from keras_attn import checks
from keras_attn.backend import take_along_axis, top_k
from keras_attn.decoding.logits_rule import LogitsRule
from keras_attn.decoding.row_streams import uniform_rows
from keras_attn.decoding.single_sequence_strategy import SingleSequenceStrategy
from keras_attn.decoding.strategy import check_width, real, whole
from keras_attn.typing import Nest, Tensor, TensorLike


@keras.saving.register_keras_serializable(package="keras_attn")
class Sampling(SingleSequenceStrategy):
    """Samples each token from the model's distribution, optionally truncated.

        y_t ~ p(v | y_<t, x)^(1 / temperature) / Z,  v in the candidates

    Candidates are the `top_k` most likely allowed tokens, and of these the
    smallest set of most likely tokens whose probability is at least `top_p` of
    their total (Holtzman et al. 2019, https://arxiv.org/abs/1904.09751). The
    score is the model's log-probability at temperature 1, not renormalized.

    Each row has its own random stream, determined by the seed and the row's
    content: its samples are the same alone and in any batch, padded or not, on
    every backend. Equal rows therefore get equal samples; use
    `num_return_sequences` for several samples per row, in the order in which
    they were drawn.

    Args:
        temperature: float > 0, at least 1.2e-38. Values below 1 sharpen the
            distribution.
        top_k: int >= 1, or None: all tokens.
        top_p: float in (0, 1], or None: the same as 1, all tokens.
        seed: int >= 0. None: a new seed for every call, from Python's `random`,
            which `keras.utils.set_random_seed` seeds.
        num_return_sequences: int >= 1. t, samples per source.
        suppress_tokens: iterable of int. Ids that are never generated.
        min_new_tokens: int >= 0. Minimum number of generated tokens, end token
            included.
        rules: list of `LogitsRule`, applied to the logits in their order,
            before `temperature`, `top_k` and `top_p`. Default ().

    Raises:
        ValueError: arguments out of range.

    Examples:
        >>> model = keras_attn.models.Transformer(
        ...     12, num_layers=1, num_heads=1, hidden_dim=4, intermediate_dim=4)
        >>> strategy = keras_attn.decoding.Sampling(
        ...     top_p=0.9, seed=7, num_return_sequences=3)
        >>> model.generate(
        ...     [[5, 6, 2]], max_new_tokens=4, strategy=strategy).tokens.shape
        (1, 3, 4)
    """

    def __init__(
        self,
        temperature: float = 1.0,
        top_k: int | None = None,
        top_p: float | None = None,
        seed: int | None = None,
        num_return_sequences: int = 1,
        suppress_tokens: Iterable[int] = (),
        min_new_tokens: int = 0,
        rules: Sequence[LogitsRule] = (),
    ) -> None:
        super().__init__(
            suppress_tokens=suppress_tokens,
            min_new_tokens=min_new_tokens,
            rules=rules,
        )
        # Not the smallest ones, which compiled programs round to 0.
        numbers = np.finfo("float32")
        least, most = float(numbers.tiny), float(numbers.max)
        if not real(temperature) or not least <= temperature <= most:
            raise ValueError(
                "`temperature` must be a finite number above 0 that float32 "
                f"can hold, at least {least:.1e}. "
                f"Received: temperature={checks.shown(temperature)}"
            )
        if top_k is not None:
            checks.positive_int("top_k", top_k, most=None)
        if top_p is not None and (not real(top_p) or not 0 < top_p <= 1):
            raise ValueError(
                "`top_p` must be a number in (0, 1]. "
                f"Received: top_p={checks.shown(top_p)}"
            )
        if seed is not None and (not whole(seed) or seed < 0):
            raise ValueError(
                "`seed` must be an integer >= 0. "
                f"Received: seed={checks.shown(seed)}"
            )
        check_width("num_return_sequences", num_return_sequences)
        self.temperature: float = float(temperature)
        self.top_k = top_k
        self.top_p: float | None = None if top_p in (None, 1) else float(top_p)
        self.seed: int | None = None if seed is None else int(seed)
        self.num_return_sequences = num_return_sequences

    def draw_uniforms(
        self, inputs: Nest, max_new_tokens: int, pad_id: int
    ) -> Tensor:
        """Draws one uniform number per token before the search.

        Args:
            inputs: nest of NumPy arrays, one row per source.
            max_new_tokens: int. L.
            pad_id: int.

        Returns:
            NumPy float32 (B, t, L).
        """
        seed = random.getrandbits(64) if self.seed is None else self.seed
        return uniform_rows(
            inputs, self.num_return_sequences, max_new_tokens, seed, pad_id
        )

    @property
    def num_hypotheses(self) -> int:
        """Number of sequences per source."""
        return self.num_return_sequences

    def get_next_token(
        self, log_probs: TensorLike, step: TensorLike, uniforms: TensorLike
    ) -> Tensor:
        """Draws the next tokens.

        Args:
            log_probs: float32 (B, t, V), -inf where a token is not allowed.
            step: int32 (), the number of tokens generated so far.
            uniforms: float32 (B, t, L), from `draw_uniforms`.

        Returns:
            int32 (B, t).
        """
        return self._drawn(log_probs, ops.take(uniforms, step, axis=-1))

    def probabilities(self, log_probs: TensorLike) -> Tensor:
        """Returns the distribution from which tokens are drawn.

        Args:
            log_probs: float32 (..., V), -inf where a token is not allowed.

        Returns:
            Float32 (..., V), 0 for all tokens but the candidates; all 0 if no
            token is allowed.
        """
        log_probs = ops.convert_to_tensor(log_probs, "float32")
        powers = _powers(log_probs, self.temperature)
        if self.top_k is not None or self.top_p is not None:
            size = log_probs.shape[-1]
            ranked, ids = top_k(log_probs, min(self.top_k or size, size))
            inside = self._inside(_powers(ranked, self.temperature))
            count = ops.sum(ops.cast(inside, "int32"), -1, keepdims=True)
            least, last = (
                take_along_axis(part, count - 1) for part in (ranked, ids)
            )
            # Of tokens that tie with the last one, those of lower ids.
            indices = ops.arange(size, dtype="int32")
            tied = ops.logical_and(log_probs == least, indices <= last)
            powers = ops.where((log_probs > least) | tied, powers, 0.0)
        total = ops.sum(powers, axis=-1, keepdims=True)
        # At least 1, except if no token is allowed.
        return powers / ops.maximum(total, 0.5)

    def program_config(self) -> dict[str, Any]:
        """Returns the config without the seed, which no program reads."""
        return self.get_config() | {"seed": None}

    def get_config(self) -> dict[str, Any]:
        """Returns the constructor's arguments."""
        return super().get_config() | {
            "temperature": self.temperature,
            "top_k": self.top_k,
            "top_p": self.top_p,
            "seed": self.seed,
            "num_return_sequences": self.num_return_sequences,
        }

    def _drawn(self, log_probs, uniform):
        """Samples tokens, int32 (B, t), given (B, t, V) and uniforms (B, t)."""
        if self.top_k is None and self.top_p is None:
            return inverse(_powers(log_probs, self.temperature), uniform)
        size = log_probs.shape[-1]
        log_probs, ids = top_k(log_probs, min(self.top_k or size, size))
        powers = _powers(log_probs, self.temperature)
        if self.top_p is not None:
            powers = ops.where(self._inside(powers), powers, 0.0)
        index = inverse(powers, uniform)
        return take_along_axis(ids, index[..., None])[..., 0]

    def _inside(self, powers):
        """Returns which of the most likely tokens `top_p` keeps."""
        if self.top_p is None:
            return ops.ones_like(powers, dtype="bool")
        before = ops.cumsum(powers, axis=-1) - powers
        total = ops.sum(powers, axis=-1, keepdims=True)
        # The first always stays, even if rounding says otherwise.
        inside = before < self.top_p * total
        first = np.arange(powers.shape[-1]) == 0
        return inside | ops.convert_to_tensor(first)


def _powers(log_probs, temperature):
    """Returns p^(1 / temperature), scaled to a maximum of 1 per row."""
    most = ops.max(log_probs, axis=-1, keepdims=True)
    # In a row of only -inf, -inf - -inf would be NaN.
    most = ops.where(most > -float("inf"), most, 0.0)
    return ops.exp((log_probs - most) / temperature)


def inverse(weights: TensorLike, uniform: TensorLike) -> Tensor:
    """Inverse transform sampling: (B, t, V), (B, t) -> int32 (B, t).

    Rounded cumulative sums may decrease slightly, so tokens of weight 0 are
    excluded explicitly.
    """
    possible = weights > 0
    sums = ops.cumsum(weights, axis=-1)
    total = ops.max(ops.where(possible, sums, 0.0), axis=-1, keepdims=True)
    # No sum exceeds a product that is rounded up to the total.
    reached = (sums > uniform[..., None] * total) | ops.equal(sums, total)
    reached = ops.logical_and(possible, reached)
    return ops.cast(ops.argmax(ops.cast(reached, "int32"), axis=-1), "int32")
