"""Ring attention on JAX: the sequence is split over the devices of one axis.

Each device has a part of the queries, and a part of the keys and values, which
travel from device to device; the outputs for all parts are combined by the
sums of their exponentials (Liu et al. 2023, https://arxiv.org/abs/2310.01889).
In the backward pass, the parts travel once more, together with their
gradients. Each device computes the blocks of `online_softmax`.
"""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import numpy as np
from jax import numpy as jnp
from jax.sharding import PartitionSpec

from keras_attn.backend.blockwise.jax_program import no_slope, pull_back
from keras_attn.backend.blockwise.layout import (
    from_query_blocks,
    key_blocks,
    metadata_blocks,
    query_blocks,
)
from keras_attn.backend.blockwise.online_softmax import (
    LOWEST,
    MASKED,
    Blocking,
    Operands,
    backward,
    compute_dtype,
    forward,
)
from keras_attn.backend.hashed_bits import GOLDEN
from keras_attn.backend.sharding import SequenceSplit
from keras_attn.typing import TensorLike


class _Ring(NamedTuple):
    """Static arguments of the program.

    Args:
        split: `SequenceSplit`, with axes that divide the sizes.
        blocking: `Blocking`, with the heads of one device.
        spans: function of the blocking and of the metadata of queries and keys.
    """

    split: SequenceSplit
    blocking: Blocking
    spans: Callable


class _Tensors(NamedTuple):
    """The tensors of a call, of all devices together or of one device."""

    query: Any
    key: Any
    value: Any
    bias: Any
    query_metadata: Any
    key_metadata: Any
    mask: Any
    seed: Any


class _Part(NamedTuple):
    """What travels from device to device: keys (J, B * K, s, H), and so on."""

    key: Any
    value: Any
    metadata: Any


def by_ring(
    split: Any,
    blocking: Blocking,
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
    """Computes attention; arguments as for `ring_attention`."""
    heads, key_heads = blocking.heads, blocking.key_heads
    rows = split.axis_that_divides(split.rows, query.shape[0])
    together = split.axis_that_divides(split.heads, heads)
    split = split._replace(rows=rows, heads=together)
    parts = split.size(together)
    if key_heads % parts:
        key, value = (
            jnp.repeat(x, heads // key_heads, axis=2) for x in (key, value)
        )
        key_heads = heads
    bias_function = blocking.bias
    if callable(bias_function) and parts > 1:
        bias_function = _HeadsOfDevice(bias_function, together, heads // parts)
    blocking = blocking._replace(
        heads=heads // parts, key_heads=key_heads // parts, bias=bias_function
    )
    tensors = _Tensors(
        query, key, value, bias, query_metadata, key_metadata, mask, seed
    )
    return _run(_Ring(split, blocking, spans), tensors)


# Jitted: an eager `shard_map` runs each of its operations by itself.
@functools.partial(jax.jit, static_argnums=0)
@functools.partial(jax.custom_vjp, nondiff_argnums=(0,))
def _run(ring, tensors):
    return _forward(ring, tensors)[0]


def _forward(ring, tensors):
    specs = _specs(ring, tensors)
    output, log_sum = _on_each_device(
        ring,
        _local_forward,
        (specs,),
        (specs.query, _log_sum_spec(ring)),
    )(tensors)
    return output, (tensors, output, log_sum)


def _backward(ring, kept, upstream):
    tensors, output, log_sum = kept
    specs = _specs(ring, tensors)
    query, key, value, bias = _on_each_device(
        ring,
        _local_backward,
        (specs, specs.query, _log_sum_spec(ring), specs.query),
        (specs.query, specs.key, specs.value, specs.bias),
        _axes_to_sum(ring, specs),
    )(tensors, output, log_sum, upstream)
    slopes = jax.tree.map(no_slope, tensors)
    return (
        slopes._replace(
            query=query,
            key=key,
            value=value,
            bias=slopes.bias if bias is None else bias,
        ),
    )


_run.__wrapped__.defvjp(_forward, _backward)


def _on_each_device(ring, function, in_specs, out_specs, *static):
    return jax.shard_map(
        functools.partial(function, ring, *static),
        mesh=ring.split.mesh,
        in_specs=in_specs,
        out_specs=out_specs,
        # The kernel starts its loops with constants, which the check takes for
        # equal on all devices (as of JAX 0.10.2).
        check_vma=False,
    )


def _specs(ring, tensors):
    """Returns how each tensor is split, as `_Tensors` of specs."""
    rows, context, heads = ring.split[1:]

    def pairs(tensor):
        axes = zip(tensor.shape, (rows, heads, context, None), strict=True)
        return PartitionSpec(*(None if n == 1 else axis for n, axis in axes))

    def metadata(tensor):
        batch = None if tensor.shape[1] == 1 else rows
        return PartitionSpec(None, batch, context)

    tokens = PartitionSpec(rows, context, heads, None)
    whole = PartitionSpec()
    of_pairs = ring.blocking.bias == "tensor"
    make = _Tensors(
        query=lambda _: tokens,
        key=lambda _: tokens,
        value=lambda _: tokens,
        bias=pairs if of_pairs else lambda _: whole,
        query_metadata=metadata,
        key_metadata=metadata,
        mask=pairs,
        seed=lambda _: whole,
    )
    return _Tensors(
        *(
            None if tensor is None else spec(tensor)
            for spec, tensor in zip(make, tensors, strict=True)
        )
    )


def _axes_to_sum(ring, specs):
    """Returns the axes that do not split a bias, so that it is used on each."""
    return tuple(
        axis for axis in ring.split.axes if axis not in (specs.bias or ())
    )


def _log_sum_spec(ring):
    """Returns how float32 (I, B, N, t, 1) is split."""
    rows, context, heads = ring.split[1:]
    return PartitionSpec(context, rows, heads, None, None)


def _local_forward(ring, tensors):
    blocking = ring.blocking
    query, part = _start(ring, tensors)
    dtype = compute_dtype(tensors.query)
    blocks, merged, rows, _ = query.shape
    shape = blocks, merged // blocking.key_heads, blocking.heads

    def step(number, carry):
        part, *found = carry
        # Sent before it is used, so that a device computes while it waits.
        following = _passed_on(ring, part)
        operands = _operands(ring, tensors, query, part, number)
        operands = operands._replace(value=operands.value.astype(dtype))
        output, log_sum = forward(blocking, operands)
        log_sum = jnp.where(log_sum >= -LOWEST, LOWEST, log_sum)
        return following, *_combined(found, (output, log_sum))

    start = (
        part,
        jnp.zeros((blocks, merged, rows, tensors.value.shape[-1]), dtype),
        jnp.full((*shape, blocking.query_block, 1), LOWEST, dtype),
    )
    _, output, log_sum = jax.lax.fori_loop(0, ring.split.devices, step, start)
    output = from_query_blocks(
        output.astype(tensors.value.dtype),
        blocking.query_block,
        blocking.key_heads,
    )
    return output, jnp.where(log_sum <= LOWEST, -MASKED, log_sum)


def _combined(first, second):
    """Combines outputs for two sets of keys, and their logarithms of sums."""
    (output, log_sum), (other, other_log_sum) = first, second
    highest = jnp.maximum(log_sum, other_log_sum)
    sums = [jnp.exp(x - highest) for x in (log_sum, other_log_sum)]
    total = sums[0] + sums[1]
    weights = [
        (x / total).reshape(*output.shape[:-1], 1)  # (I, B * K, G * t, 1)
        for x in sums
    ]
    mixed = output * weights[0] + other * weights[1]
    return mixed, highest + jnp.log(total)


def _local_backward(ring, axes_to_sum, tensors, output, log_sum, upstream):
    blocking = ring.blocking
    dtype = compute_dtype(tensors.query)
    query, part = _start(ring, tensors)
    query = query.astype(dtype)
    output, upstream = (
        query_blocks(x, blocking.query_block, blocking.key_heads)
        for x in (output, upstream)
    )

    def step(number, carry):
        part, slopes, query_slope, bias_slope = carry
        following = _passed_on(ring, part)
        operands = _operands(ring, tensors, query, part, number)
        operands = operands._replace(
            key=operands.key.astype(dtype), value=operands.value.astype(dtype)
        )
        more, *of_part, of_bias = backward(
            blocking, operands, output, log_sum, upstream, pull_back
        )
        slopes = jax.tree.map(jnp.add, slopes, of_part)
        if bias_slope is not None:
            bias_slope = _with_columns(
                ring, bias_slope, of_bias.astype(dtype), number
            )
        # After the last step, each gradient is back where its keys are.
        slopes = _passed_on(ring, slopes)
        return following, slopes, query_slope + more, bias_slope

    bias = tensors.bias
    start = (
        part,
        [jnp.zeros(x.shape, dtype) for x in (part.key, part.value)],
        jnp.zeros(query.shape, dtype),
        None if bias is None else jnp.zeros(bias.shape, dtype),
    )
    _, slopes, query_slope, bias_slope = jax.lax.fori_loop(
        0, ring.split.devices, step, start
    )
    key_slope, value_slope = (
        from_query_blocks(
            x.astype(like.dtype), blocking.key_block, blocking.key_heads
        )
        for x, like in zip(slopes, tensors[1:3], strict=True)
    )
    query_slope = from_query_blocks(
        query_slope.astype(tensors.query.dtype),
        blocking.query_block,
        blocking.key_heads,
    )
    if bias_slope is not None:
        if axes_to_sum:
            bias_slope = jax.lax.psum(bias_slope, axes_to_sum)
        bias_slope = bias_slope.astype(bias.dtype)
    return query_slope, key_slope, value_slope, bias_slope


def _start(ring, tensors):
    """Returns the blocks of this device's queries, and its own `_Part`."""
    blocking = ring.blocking
    query = query_blocks(
        tensors.query, blocking.query_block, blocking.key_heads
    )
    key, value = (key_blocks(x, blocking.key_block) for x in tensors[1:3])
    return query, _Part(key, value, tensors.key_metadata)


def _passed_on(ring, part):
    devices = ring.split.devices
    pairs = [(i, (i + 1) % devices) for i in range(devices)]
    return jax.tree.map(
        lambda x: jax.lax.ppermute(x, ring.split.context, pairs), part
    )


def _source(ring, number):
    """Returns the device that the part of a step comes from."""
    device = jax.lax.axis_index(ring.split.context)
    return (device - number) % ring.split.devices


def _operands(ring, tensors, query, part, number):
    """Returns the operands of a step."""
    blocking, source = ring.blocking, _source(ring, number)
    bias, mask = tensors.bias, tensors.mask
    if blocking.bias == "tensor":
        bias = _columns(ring, bias, source)
    if mask is not None:
        mask = _columns(ring, mask, source)
    seed = tensors.seed
    if seed is not None:
        seed = seed.astype("uint32")
        seed = seed.at[0].add(_stream(ring, source) * np.uint32(GOLDEN))
    return Operands(
        query,
        part.key,
        part.value,
        bias,
        metadata_blocks(tensors.query_metadata, blocking.query_block),
        metadata_blocks(part.metadata, blocking.key_block),
        *ring.spans(blocking, tensors.query_metadata, part.metadata),
        mask,
        seed,
    )


def _stream(ring, source):
    """Returns a different number for each device and each part of the keys."""
    split, number = ring.split, source
    for axis in split.axes:
        number = number * split.size(axis) + jax.lax.axis_index(axis)
    return number.astype("uint32")


def _columns(ring, tensor, source):
    """Returns the columns of (B, N, T, S) that belong to a part of the keys."""
    if tensor.shape[3] == 1:
        return tensor
    size = tensor.shape[3] // ring.split.devices
    return jax.lax.dynamic_slice_in_dim(tensor, source * size, size, axis=3)


def _with_columns(ring, total, slope, number):
    """Adds the gradient of a step to that of the whole bias."""
    if total.shape == slope.shape:
        return total + slope
    size = slope.shape[3]
    start = _source(ring, number) * size
    old = jax.lax.dynamic_slice_in_dim(total, start, size, axis=3)
    return jax.lax.dynamic_update_slice_in_dim(total, old + slope, start, 3)


class _HeadsOfDevice(NamedTuple):
    """The bias of the heads of one device, as a function of metadata."""

    function: Callable
    axis: str
    heads: int

    def __call__(self, parameters, query_metadata, key_metadata):
        bias = self.function(parameters, query_metadata, key_metadata)
        if bias.shape[1] == 1:
            return bias
        start = jax.lax.axis_index(self.axis) * self.heads
        return jax.lax.dynamic_slice_in_dim(bias, start, self.heads, axis=1)
