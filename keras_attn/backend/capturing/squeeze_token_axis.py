"""Drops the token axis, of size 1 in a decoding step."""

from typing import Any

import keras

from keras_attn.backend.capturing.alias_analysis import AliasAnalysis, is_tensor

if keras.backend.backend() == "torch":
    import torch
    from torch.fx.node import map_arg

    aten = torch.ops.aten
    # Elementwise operations, and those along the last axis.
    _ALONG = {
        aten.add.Tensor,
        aten.clamp.default,
        aten.gelu.default,
        aten.layer_norm.default,
        aten.mul.Tensor,
        aten.relu.default,
        aten.sigmoid.default,
        aten.silu.default,
        aten.sub.Tensor,
        aten.tanh.default,
        aten.where.ScalarOther,
        aten.where.self,
    }


def squeeze_token_axis(graph: Any) -> None:
    """Rewrites operations on (R, 1, D) to (R, D), in place.

    Products work on matrices; between them, tensors would be reshaped
    repeatedly, and each reshape takes as long as a small operation. The
    remaining reshapes cancel each other and are merged later.

    Args:
        graph: `torch.fx.Graph` from `trace`, with fake values in its nodes'
            metadata.
    """
    aliases = AliasAnalysis(graph)
    for node in list(graph.nodes):
        if aliases.is_written(node) or any(
            map(aliases.is_written, node.all_input_nodes)
        ):
            continue
        if node.target in _ALONG and _is_single(node):
            _flatten(graph, node)
        elif node.target is aten.select.int and _is_single(node.args[0]):
            if node.args[1] == 1:
                _replace(graph, node, aten.reshape.default, node.args[0])


def _is_single(node):
    shape = _shape(node)
    return shape is not None and len(shape) == 3 and shape[1] == 1


def _shape(node):
    return tuple(node.meta["val"].shape) if is_tensor(node) else None


def _flatten(graph, node):
    tensors = [_shape(x) for x in node.all_input_nodes]
    # The first axis of a matrix would broadcast against the token axis.
    if any(len(shape) == 2 and shape[0] != 1 for shape in tensors):
        return
    if any(len(shape) == 3 and shape[1] != 1 for shape in tensors):
        return
    with graph.inserting_before(node):
        flat = {
            x: _reshape(graph, x)
            for x in node.all_input_nodes
            if len(_shape(x)) == 3
        }
        args, kwargs = map_arg(
            (node.args, node.kwargs), lambda x: flat.get(x, x)
        )
        squeezed = graph.call_function(node.target, args, kwargs)
        squeezed.meta["val"] = _value(node.meta["val"])
        shape = list(_shape(node))
        result = graph.call_function(aten.reshape.default, (squeezed, shape))
        result.meta["val"] = node.meta["val"]
    node.replace_all_uses_with(result)
    graph.erase_node(node)


def _reshape(graph, node):
    value = _value(node.meta["val"])
    found = graph.call_function(aten.reshape.default, (node, list(value.shape)))
    found.meta["val"] = value
    return found


def _value(value):
    with value.fake_mode:
        return value.new_empty((value.shape[0], value.shape[2]))


def _replace(graph, node, target, source):
    with graph.inserting_before(node):
        found = graph.call_function(target, (source, list(_shape(node))))
    found.meta["val"] = node.meta["val"]
    node.replace_all_uses_with(found)
    graph.erase_node(node)
