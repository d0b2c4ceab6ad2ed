"""Attention that never holds a matrix of queries by keys."""

import keras

if keras.backend.backend() == "torch":
    from keras_attn.backend.blockwise.by_queries import by_queries as _kernel
else:
    from keras_attn.backend.blockwise.loops import by_loops as _kernel


# Scores of one head, T x S, from which on this kernel is the one to run.
_PAYS_FROM = 1024 * 1024
# Fewer queries hold few scores, whatever the number of keys: those of a step of
# a decoder, above all, which no loop should slow down.
_QUERIES = 256
# Where no block can be left out, TensorFlow's own products beat those of its
# compiler, up to what was measured: T and S of 8,192, scores of a GiB in all.
# Beyond, the memory that this kernel saves counts for more.
_DENSE_HEAD, _DENSE_ALL = (
    (8192 * 8192, 1 << 28)
    if keras.backend.backend() == "tensorflow"
    else (0, 0)
)


def blockwise_pays(query_length, key_length, dense=False, heads=1):
    """Says whether lengths are such that this kernel beats the plain one.

    Args:
        query_length: int. T.
        key_length: int. S.
        dense: bool. Every query sees every key.
        heads: int. Heads of all rows, B N.

    Returns:
        A bool.
    """
    scores = query_length * key_length
    if dense and scores <= _DENSE_HEAD and heads * scores <= _DENSE_ALL:
        return False
    return scores >= _PAYS_FROM and query_length >= _QUERIES


def blockwise_attention(
    blocking,
    query,
    key,
    value,
    *,
    bias,
    query_metadata,
    key_metadata,
    spans,
    mask,
    seed,
):
    """Computes softmax(scale Q K^T + bias) V in memory linear in T + S.

    Args:
        blocking: `Blocking`. Sizes of the blocks, and who sees whom.
        query: float (B, T, N, H), T a multiple of the block.
        key: float (B, S, K, H), S a multiple of the block, K dividing N.
        value: float (B, S, K, W).
        bias: float (B, N, T, S), size-1 axes allowed; what the blocking's
            callable takes; or None.
        query_metadata: int32 (F, B, T), the batch axis may have size 1.
        key_metadata: int32 (F, B, S), likewise.
        spans: int32 (T / t, 2) and (S / s, 2). Which blocks may see each other.
        mask: bool (B, N, T, S), size-1 axes allowed, or None.
        seed: int (2,) of the dropout, or None.

    Returns:
        Float (B, T, N, W), zero in rows that see nothing.
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
