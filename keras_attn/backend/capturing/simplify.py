"""Removes redundant operations from a graph."""

import operator
from typing import Any

import keras

from keras_attn.backend.capturing.alias_analysis import (
    AliasAnalysis,
    is_tensor,
    overwritten,
    storages,
)
from keras_attn.backend.capturing.squeeze_token_axis import squeeze_token_axis

if keras.backend.backend() == "torch":
    import torch
    from torch.fx import Node
    from torch.fx.node import map_arg

    aten = torch.ops.aten


def simplify(graph: Any) -> None:
    """Rewrites a graph in place so that it needs fewer operations.

    Eliminates casts, views and reshapes that change nothing, common
    subexpressions and dead code; fuses a product with the bias added to it;
    drops the token axis of size 1 between products. Writes keep their order
    and target.

    Args:
        graph: `torch.fx.Graph` from `trace`, with fake values in its nodes'
            metadata.
    """
    _eliminate_no_ops(graph)
    _merge_reshapes(graph)
    _eliminate_common_subexpressions(graph)
    _fuse_bias(graph)
    squeeze_token_axis(graph)
    _merge_reshapes(graph)
    _eliminate_common_subexpressions(graph)
    _eliminate_dead_code(graph)


def _eliminate_no_ops(graph):
    for node in list(graph.nodes):
        # What `torch.no_grad` is traced to; private, as of PyTorch 2.13.0.
        if node.target is torch._C._set_grad_enabled:
            # The whole graph runs without gradients.
            graph.erase_node(node)
        elif node.op == "call_function" and _is_no_op(node):
            node.replace_all_uses_with(node.args[0])
            graph.erase_node(node)


def _is_no_op(node):
    if not is_tensor(node) or not node.args or not _is_node(node.args[0]):
        return False
    before, after = node.args[0].meta.get("val"), node.meta["val"]
    if node.target in (aten.detach.default, aten.alias.default):
        return True
    # Private: overloads have no public reference to their operator,
    # as of PyTorch 2.13.0.
    name = getattr(node.target, "_overloadpacket", None)
    if name in (aten.reshape, aten.view, aten.expand, aten.slice):
        return before.shape == after.shape and before.dtype == after.dtype
    if name is not aten.to:
        return False
    # Private: operators have no public signature, as of PyTorch 2.13.0.
    has_copy = {a.name for a in node.target._schema.arguments} & {"copy"}
    copies = node.kwargs.get("copy", False) or (
        has_copy and any(value is True for value in node.args[1:])
    )
    return (
        not copies
        and node.kwargs.get("memory_format") is None
        and (before.dtype, before.device, before.layout)
        == (after.dtype, after.device, after.layout)
    )


def _merge_reshapes(graph):
    aliases = AliasAnalysis(graph)
    for node in graph.nodes:
        while (
            node.target is aten.reshape.default
            and node.args[0].target is aten.reshape.default
            and not aliases.is_written(node)
            and not aliases.is_written(node.args[0])
            and not aliases.is_written(node.args[0].args[0])
        ):
            node.replace_input_with(node.args[0], node.args[0].args[0])
    _eliminate_no_ops(graph)


def _eliminate_common_subexpressions(graph):
    aliases = AliasAnalysis(graph)
    versions = {}
    seen = {}
    for node in list(graph.nodes):
        for target in overwritten(node):
            for storage in storages(target):
                versions[storage] = versions.get(storage, 0) + 1
        if not _is_pure(node):
            continue
        sources = set().union(*map(storages, node.all_input_nodes))
        fresh = storages(node) - sources
        if fresh & (aliases.written | aliases.returned):
            continue
        read = {}
        # A view shows the memory's values when it is read, not when it was
        # created, so its inputs' versions do not matter.
        if fresh:
            read = {storage: versions.get(storage, 0) for storage in sources}
        # As text, because 1 == 1.0 == True and 0.0 == -0.0.
        key = (
            str(node.target),
            repr((node.args, node.kwargs)),
            tuple(sorted(read.items())),
        )
        first = seen.setdefault(key, node)
        if first is not node:
            node.replace_all_uses_with(first)
            graph.erase_node(node)


def _fuse_bias(graph):
    """Fuses x W + b into one `addmm`, in dtypes where rounding is harmless."""
    for node in list(graph.nodes):
        if node.target is not aten.add.Tensor or node.kwargs:
            continue
        product, bias = node.args
        if not _is_node(product) or not _is_node(bias):
            continue
        if product.target not in (aten.matmul.default, aten.mm.default):
            continue
        rows, matrix = product.args
        if len(product.users) > 1 or not _is_fusible(rows, matrix, bias):
            continue
        shape = list(node.meta["val"].shape)
        width = matrix.meta["val"].shape[0]
        with graph.inserting_before(node):
            flat = _new(graph, aten.reshape.default, rows, [-1, width])
            fused = _new(graph, aten.addmm.default, bias, flat, matrix)
            result = _new(graph, aten.reshape.default, fused, shape)
        node.replace_all_uses_with(result)
        graph.erase_node(node)
        graph.erase_node(product)
    _eliminate_no_ops(graph)


def _is_fusible(rows, matrix, bias):
    rows, matrix, bias = (x.meta["val"] for x in (rows, matrix, bias))
    # In half precision, `addmm` would round the sum once instead of twice.
    return (
        rows.dtype in (torch.float32, torch.float64)
        and rows.dtype == matrix.dtype == bias.dtype
        and rows.dim() >= 2
        and matrix.dim() == 2
        and tuple(bias.shape) == (matrix.shape[1],)
    )


def _new(graph, target, *args):
    node = graph.call_function(target, args)
    values = map_arg(args, lambda x: x.meta["val"])
    with values[0].fake_mode:
        node.meta["val"] = target(*values)
    return node


def _eliminate_dead_code(graph):
    for node in reversed(list(graph.nodes)):
        if not node.users and (_is_pure(node) or node.op == "get_attr"):
            graph.erase_node(node)


def _is_pure(node):
    if node.op != "call_function":
        return False
    if node.target is operator.getitem:
        return True
    schema = getattr(node.target, "_schema", None)
    return schema is not None and not schema.is_mutable


def _is_node(value):
    return isinstance(value, Node)
