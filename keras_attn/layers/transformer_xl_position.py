"""Transformer-XL relative positions."""

from typing import TYPE_CHECKING, Any

import keras
from keras import ops

from keras_attn import checks
from keras_attn.layers.attention_position import AttentionPosition
from keras_attn.layers.quantized_kernel import QuantizedKernel
from keras_attn.ops import relative_shift
from keras_attn.ops.positions import default_positions
from keras_attn.ops.relative import relative_sinusoids
from keras_attn.ops.sinusoids import sine_and_cosine
from keras_attn.ops.visibility import slot_offset
from keras_attn.typing import Initializer, Tensor, TensorLike

if TYPE_CHECKING:
    from keras_attn.ops.visibility import Visibility


@keras.saving.register_keras_serializable(package="keras_attn")
class TransformerXLPosition(QuantizedKernel, AttentionPosition):
    """Relative position scores of Transformer-XL.

        score[t, s] = ((q_t + u) . k_s + (q_t + v) . W R[p_t - p_s]) / sqrt(H)

    Dai et al. 2019, sec. 3.3, https://arxiv.org/abs/1901.02860. W is their
    W_{k,R}, R the sinusoids of the signed distance. Expanded, this gives their
    four terms: (a) q_t . k_s, (b) q_t . W R, (c) u . k_s and (d) v . W R; the
    factor 1 / sqrt(H) is from the authors' code. The weights are `kernel` (W),
    `content_bias` (u) and `distance_bias` (v). No tensor of size T x S x D is
    stored. If distances equal index differences, as without padding, W R is
    computed once per distance and shifted (their appendix B). Otherwise, as in
    a cached step, the angle addition formulas factor R[p_t - p_s]:

        (q_t + v) . W R[p_t - p_s] = f(q_t, p_t) . R[p_s]

    where f rotates W^T (q_t + v) by p_t: T S D multiply-adds per head instead
    of T S H.

    Args:
        num_heads: int >= 1. N of the attention layer.
        key_dim: int >= 1. H of the attention layer.
        hidden_dim: int, even. D, width of the sinusoids. Default N H.
        initializer: initializer of W.
        bias_initializer: initializer of u and v. Default zeros.
        **kwargs: arguments of `keras.layers.Layer`: `name`, `dtype`, ...

    Raises:
        ValueError: an argument is out of range, `hidden_dim` is odd, or
            `num_heads` or `key_dim` differs from the attention layer.

    Examples:
        >>> position = keras_attn.layers.TransformerXLPosition(2, 4)
        >>> layer = keras_attn.layers.MultiHeadAttention(
        ...     num_heads=2, key_dim=4, causal=True,
        ...     attention_position=position)
        >>> x = keras.random.normal((2, 5, 8), seed=0)
        >>> tuple(layer(x, x).shape), tuple(position.kernel.shape)
        ((2, 5, 8), (8, 2, 4))
    """

    def __init__(
        self,
        num_heads: int,
        key_dim: int,
        hidden_dim: int | None = None,
        initializer: Initializer = "glorot_uniform",
        bias_initializer: Initializer = "zeros",
        **kwargs: Any,
    ) -> None:
        checks.positive_int("num_heads", num_heads)
        checks.positive_int("key_dim", key_dim)
        hidden_dim = num_heads * key_dim if hidden_dim is None else hidden_dim
        checks.positive_int("hidden_dim", hidden_dim)
        if hidden_dim % 2:
            raise ValueError(
                "`hidden_dim` must be even, for sines and cosines. "
                f"Received: hidden_dim={hidden_dim}"
            )
        super().__init__(**kwargs)
        self.num_heads = num_heads
        self.key_dim = key_dim
        self.hidden_dim = hidden_dim
        self.initializer: Initializer = keras.initializers.get(initializer)
        self.bias_initializer: Initializer = keras.initializers.get(
            bias_initializer
        )
        self.kernel: keras.Variable = self._weight(
            "kernel", (hidden_dim, num_heads, key_dim), self.initializer
        )
        heads = num_heads, key_dim
        self.content_bias: keras.Variable = self._weight(
            "content_bias", heads, self.bias_initializer
        )
        self.distance_bias: keras.Variable = self._weight(
            "distance_bias", heads, self.bias_initializer
        )

    def check(self, num_heads: int, key_dim: int) -> None:
        """Raises ValueError if the heads differ from the attention layer."""
        self._check_heads(num_heads)
        if self.key_dim != key_dim:
            raise ValueError(
                "`attention_position` must have the `key_dim` of the attention "
                f"layer, {key_dim}. Received: key_dim={self.key_dim}"
            )

    def relate(
        self, query: TensorLike, visibility: "Visibility", keys: Any
    ) -> tuple[Tensor, Any]:
        """Returns q + u, and the distance scores as a bias."""
        dtype = keras.backend.result_type(query.dtype, "float32")
        biased_query = ops.cast(query, dtype) + ops.cast(
            self.distance_bias, dtype
        )
        biased_query = biased_query * self.key_dim**-0.5
        kernel = self._float_kernel(dtype)
        offset = slot_offset(visibility)
        if offset is None:
            bias = self._by_positions(biased_query, kernel, visibility, keys)
        else:
            bias = self._by_slots(
                biased_query, kernel, visibility, keys, offset
            )
        return query + ops.cast(self.content_bias, query.dtype), bias

    def get_config(self) -> dict[str, Any]:
        """Returns the constructor's arguments."""
        return {
            **super().get_config(),
            "num_heads": self.num_heads,
            "key_dim": self.key_dim,
            "hidden_dim": self.hidden_dim,
            "initializer": keras.initializers.serialize(self.initializer),
            "bias_initializer": keras.initializers.serialize(
                self.bias_initializer
            ),
        }

    def _weight(self, name, shape, initializer):
        return self.add_weight(
            shape=shape, initializer=initializer.clone(), name=name
        )

    def _by_slots(self, biased_query, kernel, visibility, keys, offset):
        """Scores each distance once; key s is at distance t + offset - s."""
        queries = ops.shape(biased_query)[1]
        if visibility.causal and visibility.query_order is None:
            # Keys after the query are masked: no distance is negative.
            count = _larger(keys, queries + offset)
        else:
            count = keys + queries - 1
        steps = ops.arange(count, dtype="int32")
        distances = queries - 1 + offset - steps
        waves = relative_sinusoids(distances, self.hidden_dim)
        relative = ops.einsum(
            "rd,dnh->rnh", ops.cast(waves, kernel.dtype), kernel
        )
        scores = ops.einsum("btnh,rnh->bntr", biased_query, relative)
        return relative_shift(scores, keys)

    def _by_positions(self, biased_query, kernel, visibility, keys):
        """Rotates queries by their positions, to match the key sinusoids."""
        queries = ops.shape(biased_query)[1]
        query_waves = self._waves(visibility.query_positions, queries)
        sine, cosine = (wave[:, :, None] for wave in query_waves)
        biased_query = ops.einsum("btnh,dnh->btnd", biased_query, kernel)
        half = self.hidden_dim // 2
        of_sine, of_cosine = biased_query[..., :half], biased_query[..., half:]
        rotated = ops.concatenate(
            [
                of_cosine * sine - of_sine * cosine,
                of_cosine * cosine + of_sine * sine,
            ],
            axis=-1,
        )
        key_waves = self._waves(visibility.key_positions, keys)
        waves = ops.transpose(ops.concatenate(key_waves, axis=-1), (0, 2, 1))
        rotated = ops.transpose(rotated, (0, 2, 1, 3))
        return ops.matmul(rotated, ops.cast(waves, rotated.dtype)[:, None])

    def _waves(self, positions, length):
        if positions is None:
            positions = default_positions(length)
        return sine_and_cosine(positions, self.hidden_dim)


def _larger(one, other):
    if ops.is_tensor(one) or ops.is_tensor(other):
        return ops.maximum(one, other)
    return max(one, other)
