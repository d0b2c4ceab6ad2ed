"""Finding what need not be computed again in every step."""

from keras_attn.backend.capturing.storages import Written


def constant_nodes(graph, weights):
    """Finds the nodes that depend on weights and constants only.

    A kernel in its flat form, a cast to half precision, a product of low rank
    that is added: in all steps they are the same. What is written, or handed
    out and so might be, is made anew in every step.

    Args:
        graph: `torch.fx.Graph`.
        weights: int. How many of the inputs, the first ones, are weights.

    Returns:
        Set of nodes, the inputs that are weights among them.
    """
    written = Written(graph)
    found = set()
    inputs = 0
    for node in graph.nodes:
        if node.op == "placeholder":
            inputs += 1
            if inputs <= weights:
                found.add(node)
        elif node.op == "get_attr":
            found.add(node)
        elif (
            node.op == "call_function"
            and all(argument in found for argument in node.all_input_nodes)
            and not written.escapes(node)
        ):
            found.add(node)
    return found
