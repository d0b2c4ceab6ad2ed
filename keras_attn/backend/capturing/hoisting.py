"""Finding what need not be computed again in every step."""

from keras_attn.backend.capturing.storages import Written, is_tensor


def constant_nodes(graph, moving):
    """Finds the nodes that are the same in all steps of a run.

    They depend on weights, on fixed arguments and on constants only: a kernel
    in its flat form, a cast to half precision, a product of low rank that is
    added, what the mask of a source comes to. What is written, or handed out
    and so might be, is made anew in every step.

    Args:
        graph: `torch.fx.Graph`.
        moving: range. Which of the inputs are new in every step.

    Returns:
        Set of nodes, the inputs that are the same among them.
    """
    written = Written(graph)
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
            and not written.escapes(node)
        ):
            found.add(node)
    return found


def idle_choices(graph, constant):
    """Finds what `where` leaves as it is, if its condition holds everywhere.

    Masks of a source are the same in all steps, and mostly hide nothing.

    Args:
        graph: `torch.fx.Graph`.
        constant: set of nodes, from `constant_nodes`.

    Returns:
        Dict of nodes: each `where` whose condition is constant, and the node
        that it would equal.
    """
    written = Written(graph)
    found = {}
    for node in graph.nodes:
        packet = getattr(node.target, "_overloadpacket", None)
        if packet is None or packet.__name__ != "where" or node in constant:
            continue
        if len(node.args) < 3 or node.args[1] not in node.all_input_nodes:
            continue
        condition, chosen = node.args[:2]
        if (
            condition in constant
            and is_tensor(chosen)
            and not written.touches(chosen)
            and not written.escapes(node)
            and _alike(chosen.meta["val"], node.meta["val"])
        ):
            found[node] = chosen
    return found


def _alike(one, other):
    return one.shape == other.shape and one.dtype == other.dtype
