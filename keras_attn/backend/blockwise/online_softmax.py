"""Attention over blocks of keys with an online softmax, and its gradient.

The running maximum and sum of the softmax are carried from block to block, and
the sum is rescaled when the maximum grows (Milakov and Gimelshein 2018,
https://arxiv.org/abs/1805.02867; Rabe and Staats 2021,
https://arxiv.org/abs/2112.05682). The backward pass recomputes the weights of a
block from the logarithm of the sum (Dao et al. 2022, algorithm 4,
https://arxiv.org/abs/2205.14135). No tensor of size T x S is materialized.

A block of queries has shape (B * K, G * t, H): the G = N / K query heads that
share a key head are stacked along one axis, so that every product is a plain
matrix product.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

from keras import ops

from keras_attn.backend.dropout import seeded_dropout
from keras_attn.backend.program_ops import reduce_max
from keras_attn.typing import TensorLike

# The score of a masked key.
MASKED = -1e30
# Above masked scores: exp(MASKED - LOWEST) is 0 in fully masked rows.
LOWEST = -1e29


class Blocking(NamedTuple):
    """Static arguments of a compiled program; no tensors, hashable.

    Args:
        query_block: int. t, queries per block.
        key_block: int. s, keys per block.
        heads: int. N.
        key_heads: int. K.
        scale: float. Factor on q . k.
        rule: callable, or None if everything is visible. Takes int32 (F, B, t)
            metadata of queries, int32 (F, B, s) of keys and a block of the mask
            or None; returns bool (B, N, t, s), size-1 axes allowed.
        bias: `"tensor"`, a callable, or None. The callable takes `bias` of the
            operands and both metadata and returns float (B, N, t, s).
        rate: float. Probability that a weight is dropped.
        spans: tuple of T / t pairs of int. Ranges [first, end) of the blocks of
            keys that each block of queries may see, whatever the values of the
            metadata are.
    """

    query_block: int
    key_block: int
    heads: int
    key_heads: int
    scale: float
    rule: Callable | None = None
    bias: Any = None
    rate: float = 0.0
    spans: tuple[Any, ...] = ()


class Operands(NamedTuple):
    """The tensors of a call; I and J are the numbers of blocks.

    Args:
        query: float (I, B * K, G * t, H).
        key: float (J, B * K, s, H).
        value: float (J, B * K, s, W).
        bias: float (B, N, T, S), size-1 axes allowed; the parameters of the
            bias callable; or None.
        query_metadata: int32 (I, F, B, t), the batch axis may have size 1.
        key_metadata: int32 (J, F, B, s), the batch axis may have size 1.
        query_spans: int32 (I, 2). Range [first, end) of the blocks of keys that
            a block of queries may see.
        key_spans: int32 (J, 2). The same per block of keys.
        mask: bool (B, N, T, S), size-1 axes allowed, or None.
        seed: int (2,). Seed of the dropout, or None.
    """

    query: Any
    key: Any
    value: Any
    bias: Any
    query_metadata: Any
    key_metadata: Any
    query_spans: Any
    key_spans: Any
    mask: Any
    seed: Any


def forward(blocking: Blocking, operands: Operands) -> Any:
    """Computes the output and the residual for the backward pass.

    Args:
        blocking: `Blocking`.
        operands: `Operands`.

    Returns:
        Float (I, B * K, G * t, W), and float32 (I, B, N, t, 1): the logarithm
        of the sum of exponentials, huge in fully masked rows.
    """
    blocks, merged, rows, _ = ops.shape(operands.query)
    width = operands.value.shape[-1]
    dtype = compute_dtype(operands.query)
    batch = merged // blocking.key_heads
    row = (batch, blocking.heads, blocking.query_block, 1)

    def over_queries(i, results):
        output, log_sum = results

        def over_keys(j, carry):
            highest, total, mixed = carry
            scores = _scores(blocking, operands, i, j)
            top = ops.maximum(highest, reduce_max(scores, -1, keepdims=True))
            weights = ops.exp(scores - top)
            shrink = ops.exp(highest - top)
            total = total * shrink + ops.sum(weights, -1, keepdims=True)
            used = _drop(blocking, operands, weights, i, j)
            value = ops.cast(operands.value[j], dtype)
            added = ops.einsum("xts,xsw->xtw", _merge(used, merged), value)
            shrink = ops.reshape(shrink, (merged, rows, 1))
            return top, total, mixed * shrink + added

        first, last = operands.query_spans[i, 0], operands.query_spans[i, 1]
        start = (
            ops.full(row, LOWEST, dtype),
            ops.zeros(row, dtype),
            ops.zeros((merged, rows, width), dtype),
        )
        highest, total, mixed = ops.fori_loop(first, last, over_keys, start)
        empty = total == 0
        total = ops.where(empty, 1, total)
        mixed = mixed / ops.reshape(total, (merged, rows, 1))
        output = _put(output, i, ops.cast(mixed, output.dtype))
        log_total = ops.where(empty, -MASKED, highest + ops.log(total))
        return output, _put(log_sum, i, log_total)

    results = (
        ops.zeros((blocks, merged, rows, width), operands.value.dtype),
        ops.zeros((blocks, *row), dtype),
    )
    return ops.fori_loop(0, blocks, over_queries, results)


def backward(
    blocking: Blocking,
    operands: Operands,
    output: TensorLike,
    log_sum: TensorLike,
    upstream: float,
    pull_back: Callable[..., Any],
) -> tuple[Any, Any, Any, Any]:
    """Computes the gradient of `forward`.

    Args:
        blocking: `Blocking`.
        operands: `Operands`.
        output: float (I, B * K, G * t, W), from `forward`.
        log_sum: float (I, B, N, t, 1), from `forward`.
        upstream: float, the gradient with respect to `output`.
        pull_back: callable. Takes a function, a tensor and the gradient with
            respect to the function's result; returns that with respect to the
            tensor.

    Returns:
        Gradients with respect to query, key, value and bias (or None).
    """
    dtype = compute_dtype(operands.query)
    merged = ops.shape(operands.query)[1]
    shape = ops.shape(log_sum)
    center = ops.sum(
        ops.cast(output, dtype) * ops.cast(upstream, dtype), -1, keepdims=True
    )
    center = ops.reshape(center, shape)
    # A product that transposes the weights of a block takes twice as long
    # (as of JAX 0.10.2 and TensorFlow 2.21.0). The other operand is transposed
    # instead, once, and so is the result.
    queries_transposed, upstream_transposed = map(
        _transposed, (operands.query, upstream)
    )

    def over_keys(j, results):
        key_slopes, value_slopes, *rest = results
        key = ops.cast(operands.key[j], dtype)
        value = ops.cast(operands.value[j], dtype)

        def over_queries(i, carry):
            key_slope, value_slope, query_slopes, *bias_slope = carry
            arriving = ops.cast(upstream[i], dtype)
            scores = _scores(blocking, operands, i, j)
            weights = ops.exp(scores - log_sum[i])
            used = _drop(blocking, operands, weights, i, j)
            value_slope = value_slope + ops.einsum(
                "xwt,xts->xws",
                ops.cast(upstream_transposed[i], dtype),
                _merge(used, merged),
            )
            slope = ops.einsum("xtw,xsw->xts", arriving, value)
            slope = ops.reshape(slope, ops.shape(weights))
            slope = _drop(blocking, operands, slope, i, j)
            slope = weights * (slope - center[i])
            if bias_slope:
                bias_slope = [
                    _bias_slope(
                        blocking,
                        operands,
                        bias_slope[0],
                        slope,
                        i,
                        j,
                        pull_back,
                    )
                ]
            slope = _merge(slope, merged)
            query = ops.cast(queries_transposed[i], dtype) * blocking.scale
            key_slope = key_slope + ops.einsum("xht,xts->xhs", query, slope)
            added = ops.einsum("xts,xsh->xth", slope, key) * blocking.scale
            query_slopes = _put(query_slopes, i, query_slopes[i] + added)
            return key_slope, value_slope, query_slopes, *bias_slope

        first, last = operands.key_spans[j, 0], operands.key_spans[j, 1]
        start = (
            ops.zeros_like(key_slopes[0], dtype),
            ops.zeros_like(value_slopes[0], dtype),
            *rest,
        )
        key_slope, value_slope, *rest = ops.fori_loop(
            first, last, over_queries, start
        )
        return (
            _put(key_slopes, j, ops.cast(key_slope, key_slopes.dtype)),
            _put(value_slopes, j, ops.cast(value_slope, value_slopes.dtype)),
            *rest,
        )

    results = [
        ops.zeros_like(_transposed(operands.key)),
        ops.zeros_like(_transposed(operands.value)),
        ops.zeros_like(operands.query, dtype),
    ]
    if blocking.bias is not None and operands.bias is not None:
        results.append(ops.zeros_like(operands.bias, dtype))
    key_blocks = ops.shape(operands.key)[0]
    key, value, query, *bias = ops.fori_loop(
        0, key_blocks, over_keys, tuple(results)
    )
    bias = ops.cast(bias[0], operands.bias.dtype) if bias else None
    query = ops.cast(query, operands.query.dtype)
    return query, _transposed(key), _transposed(value), bias


def _scores(blocking, operands, i, j):
    dtype = compute_dtype(operands.query)
    query = ops.cast(operands.query[i], dtype) * blocking.scale
    key = ops.cast(operands.key[j], dtype)
    scores = ops.einsum("xth,xsh->xts", query, key)
    merged = ops.shape(operands.query)[1]
    shape = (
        merged // blocking.key_heads,
        blocking.heads,
        blocking.query_block,
        blocking.key_block,
    )
    scores = ops.reshape(scores, shape)
    metadata = operands.query_metadata[i], operands.key_metadata[j]
    if blocking.bias == "tensor":
        bias, _ = _block(operands.bias, blocking, i, j)
        scores = scores + ops.cast(bias, dtype)
    elif blocking.bias is not None:
        bias = blocking.bias(operands.bias, *metadata)
        scores = scores + ops.cast(bias, dtype)
    if blocking.rule is None:
        return scores
    mask = operands.mask
    if mask is not None:
        mask, _ = _block(mask, blocking, i, j)
    return ops.where(blocking.rule(*metadata, mask), scores, MASKED)


def _drop(blocking, operands, weights, i, j):
    if not blocking.rate:
        return weights
    block = i * ops.shape(operands.key)[0] + j
    return seeded_dropout(weights, blocking.rate, operands.seed, block)


def _bias_slope(blocking, operands, total, slope, i, j, pull_back):
    if blocking.bias != "tensor":
        metadata = operands.query_metadata[i], operands.key_metadata[j]

        def bias(parameters):
            shape = ops.shape(slope)
            whole = ops.cast(blocking.bias(parameters, *metadata), slope.dtype)
            return ops.broadcast_to(whole, shape)

        return total + ops.cast(
            pull_back(bias, operands.bias, slope), total.dtype
        )
    old, start = _block(total, blocking, i, j)
    for axis, size in enumerate(operands.bias.shape):
        if size == 1:
            slope = ops.sum(slope, axis, keepdims=True)
    return ops.slice_update(total, start, old + slope)


def _block(tensor, blocking, i, j):
    """Returns the part of (B, N, T, S) for block (i, j), and its start."""
    shape = list(ops.shape(tensor))
    start = [0, 0, 0, 0]
    for axis, number, size in (
        (2, i, blocking.query_block),
        (3, j, blocking.key_block),
    ):
        if tensor.shape[axis] != 1:
            start[axis], shape[axis] = number * size, size
    return ops.slice(tensor, start, shape), start


def _put(blocks, i, block):
    start = [i] + [0] * (len(blocks.shape) - 1)
    return ops.slice_update(blocks, start, ops.expand_dims(block, 0))


def _transposed(blocks):
    return ops.transpose(blocks, (0, 1, 3, 2))


def _merge(weights, merged):
    batch, heads, queries, keys = ops.shape(weights)
    rows = batch * heads // merged * queries
    return ops.reshape(weights, (merged, rows, keys))


def compute_dtype(tensor: TensorLike) -> Any:
    """Returns the dtype of scores and sums."""
    return "float64" if tensor.dtype == "float64" else "float32"
