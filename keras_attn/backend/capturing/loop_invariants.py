"""Finds loop-invariant nodes of a graph."""

from typing import Any

from keras_attn.backend.capturing.alias_analysis import AliasAnalysis, is_tensor


def loop_invariant_nodes(graph: Any, moving: range) -> set[Any]:
    """Finds the nodes whose values are the same in all steps of a run.

    They depend only on weights, fixed arguments and constants: a reshaped
    kernel, a cast to half precision, LoRA's low-rank product, anything computed
    from the source mask. Nodes that are written into, or are returned and so
    may be written by the caller, are computed in every step.

    Args:
        graph: `torch.fx.Graph`.
        moving: range. Indices of the inputs that change in every step.

    Returns:
        Set of nodes, including the inputs that do not change.
    """
    aliases = AliasAnalysis(graph)
    found = set()
    inputs = 0
    for node in graph.nodes:
        if node.op == "placeholder":
            if inputs not in moving:
                found.add(node)
            inputs += 1
        elif node.op == "get_attr":
            found.add(node)
        elif (
            node.op == "call_function"
            and all(argument in found for argument in node.all_input_nodes)
            and not aliases.escapes(node)
        ):
            found.add(node)
    return found


def redundant_selects(graph: Any, invariant: set[Any]) -> dict[Any, Any]:
    """Finds `where` nodes that change nothing if their condition is all True.

    Source masks are the same in all steps, and most of them mask nothing.

    Args:
        graph: `torch.fx.Graph`.
        invariant: set of nodes, from `loop_invariant_nodes`.

    Returns:
        Dict from each `where` with a loop-invariant condition to the node that
        it would equal.
    """
    aliases = AliasAnalysis(graph)
    found = {}
    for node in graph.nodes:
        # Private: overloads have no public reference to their operator,
        # as of PyTorch 2.13.0.
        packet = getattr(node.target, "_overloadpacket", None)
        if packet is None or packet.__name__ != "where" or node in invariant:
            continue
        if len(node.args) < 3 or node.args[1] not in node.all_input_nodes:
            continue
        condition, chosen = node.args[:2]
        if (
            condition in invariant
            and is_tensor(chosen)
            and not aliases.is_written(chosen)
            and not aliases.escapes(node)
            and _alike(chosen.meta["val"], node.meta["val"])
        ):
            found[node] = chosen
    return found


def _alike(one, other):
    return one.shape == other.shape and one.dtype == other.dtype
