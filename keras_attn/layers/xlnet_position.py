"""XLNet relative positions and segment encodings."""

from typing import TYPE_CHECKING, Any

import keras
from keras import ops

from keras_attn.layers.transformer_xl_position import TransformerXLPosition
from keras_attn.typing import Initializer, Tensor, TensorLike

if TYPE_CHECKING:
    from keras_attn.ops.visibility import Visibility


@keras.saving.register_keras_serializable(package="keras_attn")
class XLNetPosition(TransformerXLPosition):
    """Relative position and segment scores of XLNet.

        score[t, s] = ((q_t + u) . k_s + (q_t + v) . W R[p_t - p_s]
                       + (q_t + b) . c[0 if t, s in the same segment else 1]
                      ) / sqrt(H)

    Adds the relative segment encodings of Yang et al. 2019, sec. 2.5,
    https://arxiv.org/abs/1906.08237, to `TransformerXLPosition`. The weights
    are `kernel` (W), `content_bias` (u), `distance_bias` (v), `segment_bias`
    (b) and `segment_table` (c). Without `query_token_type_ids` in the
    `keras_attn.ops.Visibility`, all tokens are in the same segment.

    Args:
        num_heads: int >= 1. N of the attention layer.
        key_dim: int >= 1. H of the attention layer.
        hidden_dim: int, even. D, width of the sinusoids. Default N H.
        initializer: initializer of W and c.
        bias_initializer: initializer of u, v and b. Default zeros.
        **kwargs: arguments of `keras.layers.Layer`: `name`, `dtype`, ...

    Raises:
        ValueError: as for `TransformerXLPosition`.

    Examples:
        >>> position = keras_attn.layers.XLNetPosition(2, 4)
        >>> tuple(position.segment_table.shape)
        (2, 2, 4)
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
        super().__init__(
            num_heads=num_heads,
            key_dim=key_dim,
            hidden_dim=hidden_dim,
            initializer=initializer,
            bias_initializer=bias_initializer,
            **kwargs,
        )
        heads = num_heads, key_dim
        self.segment_bias: keras.Variable = self._weight(
            "segment_bias", heads, self.bias_initializer
        )
        self.segment_table: keras.Variable = self._weight(
            "segment_table", (2, *heads), self.initializer
        )

    def relate(
        self, query: TensorLike, visibility: "Visibility", keys: Any
    ) -> tuple[Tensor, Any]:
        """Returns q + u, and the distance and segment scores as a bias."""
        content, bias = super().relate(query, visibility, keys)
        biased_query = ops.cast(query, bias.dtype) + ops.cast(
            self.segment_bias, bias.dtype
        )
        scores = ops.einsum(
            "btnh,snh->bnts",
            biased_query * self.key_dim**-0.5,
            ops.cast(self.segment_table, bias.dtype),
        )
        same, other = scores[..., :1], scores[..., 1:]
        token_types = (
            visibility.query_token_type_ids,
            visibility.key_token_type_ids,
        )
        if token_types[0] is None:
            # The same for every key, so the weights do not change, but training
            # does not warn of variables without a gradient
            # (as of Keras 3.15.1).
            return content, bias + same
        same_segment = ops.equal(
            token_types[0][:, None, :, None], token_types[1][:, None, None, :]
        )
        return content, bias + ops.where(same_segment, same, other)
