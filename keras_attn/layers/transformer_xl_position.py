"""Transformer-XL's positions: scores of distances beside those of keys."""

import keras
from keras import ops

from keras_attn import checks
from keras_attn.layers.attention_position import AttentionPosition
from keras_attn.ops import relative_shift
from keras_attn.ops.positions import default_positions
from keras_attn.ops.relative import relative_sinusoids
from keras_attn.ops.sinusoids import sine_and_cosine
from keras_attn.ops.visibility import slot_offset


@keras.saving.register_keras_serializable(package="keras_attn")
class TransformerXLPosition(AttentionPosition):
    """Scores keys by what they are and, apart from it, by how far away.

        score[t, s] = ((q_t + u) . k_s + (q_t + v) . W R[p_t - p_s]) / sqrt(H)

    Dai et al. 2019, sec. 3.3, https://arxiv.org/abs/1901.02860; W is W_{k,R}
    there, R the sinusoids of the distance, of both signs. Multiplied out these
    are their four terms: (a) q_t . k_s, (b) q_t . W R, (c) u . k_s and (d) v .
    W R; the root of H is that of the authors' code. The weights are `kernel`
    (W), `content_bias` (u) and `distance_bias` (v). Nothing of the size T x S x
    D is held. Where distances are those of the slots, as without padding, W R
    is computed for each distance once and shifted into place (appendix B
    there). Anywhere else, as in a cached step, the addition theorems take R[p_t
    - p_s] apart:

        (q_t + v) . W R[p_t - p_s] = f(q_t, p_t) . R[p_s]

    with f a rotation of W^T (q_t + v) by p_t: T S D multiply-adds a head
    instead of T S H.

    Args:
        num_heads: int >= 1. N, that of the attention.
        key_dim: int >= 1. H, that of the attention.
        hidden_dim: int, even. D, width of the sinusoids; default N H.
        initializer: initializer of W.
        bias_initializer: initializer of u and v. Default zeros.
        **kwargs: arguments of `keras.layers.Layer`: `name`, `dtype`, ...

    Raises:
        ValueError: an argument out of range, an odd width, or heads or a width
            of them that are not those of the attention.

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
        num_heads,
        key_dim,
        hidden_dim=None,
        initializer="glorot_uniform",
        bias_initializer="zeros",
        **kwargs,
    ):
        checks.positive_int("num_heads", num_heads)
        checks.positive_int("key_dim", key_dim)
        hidden_dim = num_heads * key_dim if hidden_dim is None else hidden_dim
        checks.positive_int("hidden_dim", hidden_dim)
        if hidden_dim % 2:
            raise ValueError(
                "`hidden_dim` must be even, half of it are sines. "
                f"Received: hidden_dim={hidden_dim}"
            )
        super().__init__(**kwargs)
        self.num_heads = num_heads
        self.key_dim = key_dim
        self.hidden_dim = hidden_dim
        self.initializer = keras.initializers.get(initializer)
        self.bias_initializer = keras.initializers.get(bias_initializer)
        self.kernel = self._weight(
            "kernel", (hidden_dim, num_heads, key_dim), self.initializer
        )
        heads = num_heads, key_dim
        self.content_bias = self._weight(
            "content_bias", heads, self.bias_initializer
        )
        self.distance_bias = self._weight(
            "distance_bias", heads, self.bias_initializer
        )

    def check(self, num_heads, key_dim):
        """Raises ValueError where the attention has other heads."""
        self._check_heads(num_heads)
        if self.key_dim != key_dim:
            raise ValueError(
                "`attention_position` must have the `key_dim` of the "
                "attention, "
                f"{key_dim}. Received: key_dim={self.key_dim}"
            )

    def relate(self, query, visibility, keys):
        """Returns q + u, and the scores of the distances as a bias."""
        dtype = keras.backend.result_type(query.dtype, "float32")
        asking = ops.cast(query, dtype) + ops.cast(self.distance_bias, dtype)
        asking = asking * self.key_dim**-0.5
        kernel = ops.cast(self.kernel, dtype)
        offset = slot_offset(visibility)
        if offset is None:
            bias = self._by_positions(asking, kernel, visibility, keys)
        else:
            bias = self._by_slots(asking, kernel, visibility, keys, offset)
        return query + ops.cast(self.content_bias, query.dtype), bias

    def get_config(self):
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

    def _by_slots(self, asking, kernel, visibility, keys, offset):
        """Scores every distance once; slot s is t + offset - s away."""
        queries = ops.shape(asking)[1]
        if visibility.causal and visibility.query_order is None:
            # Keys behind the query are hidden: no distance is negative.
            count = _larger(keys, queries + offset)
        else:
            count = keys + queries - 1
        places = ops.arange(count, dtype="int32")
        distances = queries - 1 + offset - places
        waves = relative_sinusoids(distances, self.hidden_dim)
        relative = ops.einsum(
            "rd,dnh->rnh", ops.cast(waves, kernel.dtype), kernel
        )
        scores = ops.einsum("btnh,rnh->bntr", asking, relative)
        return relative_shift(scores, keys)

    def _by_positions(self, asking, kernel, visibility, keys):
        """Turns queries by their positions, to meet those of the keys."""
        queries = ops.shape(asking)[1]
        query_waves = self._waves(visibility.query_positions, queries)
        sine, cosine = (wave[:, :, None] for wave in query_waves)
        asking = ops.einsum("btnh,dnh->btnd", asking, kernel)
        half = self.hidden_dim // 2
        of_sine, of_cosine = asking[..., :half], asking[..., half:]
        turned = ops.concatenate(
            [
                of_cosine * sine - of_sine * cosine,
                of_cosine * cosine + of_sine * sine,
            ],
            axis=-1,
        )
        key_waves = self._waves(visibility.key_positions, keys)
        waves = ops.transpose(ops.concatenate(key_waves, axis=-1), (0, 2, 1))
        turned = ops.transpose(turned, (0, 2, 1, 3))
        return ops.matmul(turned, ops.cast(waves, turned.dtype)[:, None])

    def _waves(self, positions, length):
        if positions is None:
            positions = default_positions(length)
        return sine_and_cosine(positions, self.hidden_dim)


def _larger(one, other):
    if isinstance(one, int) and isinstance(other, int):
        return max(one, other)
    return ops.maximum(one, other)
