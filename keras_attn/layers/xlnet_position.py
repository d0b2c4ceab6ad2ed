"""XLNet's positions: Transformer-XL's, and whether two texts are one."""

import keras
from keras import ops

from keras_attn.layers.transformer_xl_position import TransformerXLPosition


@keras.saving.register_keras_serializable(package="keras_attn")
class XLNetPosition(TransformerXLPosition):
    """Scores keys by what they are, how far away, and of the same text or not.

        score[t, s] = ((q_t + u) . k_s + (q_t + v) . W R[p_t - p_s]
                       + (q_t + b) . c[0 if t and s are of one text else 1]
                      ) / sqrt(H)

    Yang et al. 2019, sec. 2.5, https://arxiv.org/abs/1906.08237: relative
    segment encodings. The weights are `kernel` (W), `content_bias` (u),
    `distance_bias` (v), `segment_bias` (b) and `segment_table` (c). Where
    nothing is said of texts (`keras_attn.ops.Visibility`,
    `query_token_type_ids`) all is one.

    Args:
        num_heads: int >= 1. N, that of the attention.
        key_dim: int >= 1. H, that of the attention.
        hidden_dim: int, even. D, width of the sinusoids; default N H.
        initializer: initializer of W and c.
        bias_initializer: initializer of u, v and b. Default zeros.
        **kwargs: arguments of `keras.layers.Layer`: `name`, `dtype`, ...

    Raises:
        ValueError: what `TransformerXLPosition` raises.

    Examples:
        >>> position = keras_attn.layers.XLNetPosition(2, 4)
        >>> tuple(position.segment_table.shape)
        (2, 2, 4)
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
        super().__init__(
            num_heads,
            key_dim,
            hidden_dim,
            initializer,
            bias_initializer,
            **kwargs,
        )
        heads = num_heads, key_dim
        self.segment_bias = self._weight(
            "segment_bias", heads, self.bias_initializer
        )
        self.segment_table = self._weight(
            "segment_table", (2, *heads), self.initializer
        )

    def relate(self, query, visibility, keys):
        """Returns q + u, and the scores of distances and texts as a bias."""
        content, bias = super().relate(query, visibility, keys)
        asking = ops.cast(query, bias.dtype) + ops.cast(
            self.segment_bias, bias.dtype
        )
        scores = ops.einsum(
            "btnh,snh->bnts",
            asking * self.key_dim**-0.5,
            ops.cast(self.segment_table, bias.dtype),
        )
        same, other = scores[..., :1], scores[..., 1:]
        sides = visibility.query_token_type_ids, visibility.key_token_type_ids
        if sides[0] is None:
            # The same for every key, which changes no weight; but who trains
            # would be warned of variables without a gradient.
            return content, bias + same
        one_text = ops.equal(
            sides[0][:, None, :, None], sides[1][:, None, None, :]
        )
        return content, bias + ops.where(one_text, same, other)
