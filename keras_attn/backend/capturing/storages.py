"""Which tensors of a graph share memory, and which memory is written."""


def is_tensor(node):
    """Says whether a node stands for one tensor."""
    return hasattr(node.meta.get("val"), "untyped_storage")


def memory(node):
    """Returns what tells the memory of a node's tensors, a set of int."""
    value = node.meta.get("val")
    values = value if isinstance(value, (list, tuple)) else [value]
    return {
        tensor.untyped_storage()._cdata
        for tensor in values
        if hasattr(tensor, "untyped_storage")
    }


def overwritten(node):
    """Returns the nodes whose tensors a node writes into, a list."""
    schema = getattr(node.target, "_schema", None)
    if schema is None or not schema.is_mutable:
        return []
    given = dict(zip(schema.arguments, node.args, strict=False))
    return [
        node.kwargs.get(argument.name, given.get(argument))
        for argument in schema.arguments
        if argument.alias_info is not None and argument.alias_info.is_write
    ]


class Written:
    """Knows the memory that a graph writes, and what it hands out.

    Args:
        graph: `torch.fx.Graph` from `trace`.
    """

    def __init__(self, graph):
        self.places = set()
        self.returned = set()
        for node in graph.nodes:
            for target in overwritten(node):
                self.places |= memory(target)
            if node.op == "output":
                for result in node.all_input_nodes:
                    self.returned |= memory(result)

    def touches(self, node):
        """Says whether any of the node's memory is written in the graph."""
        return bool(memory(node) & self.places)

    def escapes(self, node):
        """Says whether what the node returns may be written by someone."""
        return bool(memory(node) & (self.places | self.returned))
