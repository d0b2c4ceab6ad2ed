"""Attention without materializing the (T, S) score matrix."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import keras

from keras_attn.typing import Tensor, TensorLike

if TYPE_CHECKING:
    from keras_attn.backend.blockwise.online_softmax import Blocking
    from keras_attn.backend.sharding import SequenceSplit


if keras.backend.backend() == "torch":
    from keras_attn.backend.blockwise.by_queries import by_queries as _kernel
else:
    from keras_attn.backend.blockwise.loops import by_loops as _kernel
if keras.backend.backend() == "jax":
    from keras_attn.backend.blockwise.ring import by_ring

# Number of scores per head, T * S, from which this kernel pays.
_PAYS_FROM = 1024 * 1024
# With fewer queries there are few scores, whatever the number of keys; a loop
# would slow down decoding steps in particular.
_QUERIES = 256
# If no block can be skipped, TensorFlow's own products are faster than those of
# its compiler (as of TensorFlow 2.21.0), up to what was measured:
# T = S = 8,192, 1 GiB of scores in all. Beyond that, the memory that this
# kernel saves matters more.
_DENSE_HEAD, _DENSE_ALL = (
    (8192 * 8192, 1 << 28)
    if keras.backend.backend() == "tensorflow"
    else (0, 0)
)


def blockwise_pays(
    query_length: int, key_length: int, dense: bool = False, heads: int = 1
) -> bool:
    """Returns whether this kernel beats the plain one at these lengths.

    Args:
        query_length: int. T.
        key_length: int. S.
        dense: bool. Every query sees every key.
        heads: int. Number of heads of all rows, B N.

    Returns:
        A bool.
    """
    scores = query_length * key_length
    if dense and scores <= _DENSE_HEAD and heads * scores <= _DENSE_ALL:
        return False
    return scores >= _PAYS_FROM and query_length >= _QUERIES


def blockwise_attention(
    blocking: "Blocking",
    query: TensorLike,
    key: TensorLike,
    value: TensorLike,
    *,
    bias: TensorLike | None,
    query_metadata: TensorLike,
    key_metadata: TensorLike,
    spans: Callable[..., Any],
    mask: TensorLike | None,
    seed: Any,
) -> Tensor:
    """Computes softmax(scale Q K^T + bias) V in memory linear in T + S.

    Args:
        blocking: `Blocking`. Block sizes and visibility rule.
        query: float (B, T, N, H), T a multiple of the block size.
        key: float (B, S, K, H), S a multiple of the block size, K dividing N.
        value: float (B, S, K, W).
        bias: float (B, N, T, S), size-1 axes allowed; the parameters of the
            blocking's bias callable; or None.
        query_metadata: int32 (F, B, T), the batch axis may have size 1.
        key_metadata: int32 (F, B, S), the batch axis may have size 1.
        spans: function that returns int32 (T / t, 2) and (S / s, 2): which
            blocks may see each other. Not called if the values cannot be read
            but would have to be; `blocking.spans` is used instead.
        mask: bool (B, N, T, S), size-1 axes allowed, or None.
        seed: int (2,). Seed of the dropout, or None.

    Returns:
        Float (B, T, N, W), zero in fully masked rows.
    """
    return _kernel(
        blocking,
        query,
        key,
        value,
        bias=bias,
        query_metadata=query_metadata,
        key_metadata=key_metadata,
        spans=spans,
        mask=mask,
        seed=seed,
    )


def ring_attention(
    split: "SequenceSplit",
    blocking: "Blocking",
    query: TensorLike,
    key: TensorLike,
    value: TensorLike,
    **operands: Any,
) -> Tensor:
    """Computes `blockwise_attention` of sequences split over devices, on JAX.

    Args:
        split: `SequenceSplit`, from `sequence_split`.
        blocking: `Blocking`, with the heads of all devices.
        query: float (B, T, N, H). The part of each device is a multiple of the
            block size.
        key: float (B, S, K, H). Its parts too are multiples of the block size.
        value: float (B, S, K, W).
        **operands: the keyword arguments of `blockwise_attention`, with `spans`
            as a hashable function that takes a `Blocking` and the metadata of
            queries and keys of one device, and returns their spans.

    Returns:
        Float (B, T, N, W), zero in fully masked rows.
    """
    return by_ring(split, blocking, query, key, value, **operands)
