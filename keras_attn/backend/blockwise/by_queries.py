"""Blockwise attention on PyTorch: one fused call per block of queries.

PyTorch's fused kernel is itself an online softmax over blocks of keys, but its
mask or bias has the full size T x S (as of PyTorch 2.13.0). A block of queries
with the keys that it may see needs only a small one; it is recomputed in the
backward pass.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch
from torch.utils.checkpoint import checkpoint

from keras_attn.backend.dropout import seeded_dropout
from keras_attn.backend.fused import fused_attention
from keras_attn.backend.inspection import is_concrete
from keras_attn.typing import TensorLike

if TYPE_CHECKING:
    from keras_attn.backend.blockwise.online_softmax import Blocking


def by_queries(
    blocking: "Blocking",
    query: TensorLike,
    key: TensorLike,
    value: TensorLike,
    *,
    bias: TensorLike,
    query_metadata: TensorLike,
    key_metadata: TensorLike,
    spans: Callable[..., Any],
    mask: TensorLike,
    seed: Any,
) -> Any:
    """Computes attention one block of queries at a time.

    Args and returns as for `blockwise_attention`.
    """
    outputs = []
    readable = is_concrete(query_metadata) and is_concrete(key_metadata)
    # Reading the spans from a GPU in every layer would stall it.
    ranges = spans()[0].tolist() if readable else blocking.spans
    for i, (first, last) in enumerate(ranges):
        rows = slice(i * blocking.query_block, (i + 1) * blocking.query_block)
        # A span may be empty, but the fused kernel needs at least one key.
        columns = slice(
            first * blocking.key_block,
            max(last, first + 1) * blocking.key_block,
        )

        def attend(query, key, value, bias, rows=rows, columns=columns, i=i):
            metadata = query_metadata[:, :, rows], key_metadata[:, :, columns]
            return _attend(
                blocking,
                query,
                key,
                value,
                bias,
                metadata,
                mask,
                seed,
                (rows, columns, i),
            )

        arguments = query[:, rows], key[:, columns], value[:, columns], bias
        if torch.is_grad_enabled():
            output = checkpoint(
                attend,
                *arguments,
                use_reentrant=False,
                preserve_rng_state=False,
            )
        else:
            output = attend(*arguments)
        outputs.append(output)
    return torch.cat(outputs, dim=1)


def _attend(blocking, query, key, value, bias, metadata, mask, seed, block):
    rows, columns, i = block
    if blocking.bias == "tensor":
        bias = _part(bias, rows, columns)
    elif blocking.bias is not None:
        bias = blocking.bias(bias, *metadata)
    visible = None
    if blocking.rule is not None:
        part = None if mask is None else _part(mask, rows, columns)
        visible = blocking.rule(*metadata, part)
    explicit = bias is not None and (
        bias.requires_grad
        # GPU kernels would reinterpret its bits as the dtype of the query
        # (pytorch/pytorch#191612, as of PyTorch 2.13.0).
        or (bias.dtype != query.dtype and query.device.type != "cpu")
    )
    if not blocking.rate and not explicit:
        fully_masked = (
            None if visible is None else ~visible.any(-1, keepdim=True)
        )
        output = fused_attention(
            query,
            key,
            value,
            visible,
            fully_masked,
            bias=bias,
            scale=blocking.scale,
        )
        if fully_masked is None:
            return output
        return output.masked_fill(fully_masked.transpose(1, 2), 0)
    return _explicit(blocking, query, key, value, bias, visible, seed, i)


def _explicit(blocking, query, key, value, bias, visible, seed, block):
    dtype = torch.float64 if query.dtype == torch.float64 else torch.float32
    groups = blocking.heads // blocking.key_heads
    query = query.to(dtype).transpose(1, 2) * blocking.scale
    key, spread = (
        x.to(dtype).transpose(1, 2).repeat_interleave(groups, 1)
        for x in (key, value)
    )
    scores = query @ key.transpose(2, 3)
    if bias is not None:
        scores = scores + bias
    if visible is not None:
        scores = scores.masked_fill(~visible, -1e30)
    weights = scores.softmax(-1)
    if visible is not None:
        weights = weights.masked_fill(~visible, 0)
    if blocking.rate:
        weights = seeded_dropout(weights, blocking.rate, seed, block)
    return (weights @ spread).transpose(1, 2).to(value.dtype)


def _part(tensor, rows, columns):
    if tensor.shape[2] != 1:
        tensor = tensor[:, :, rows]
    return tensor if tensor.shape[3] == 1 else tensor[..., columns]
