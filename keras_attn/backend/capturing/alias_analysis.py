"""Memory shared, written and returned by the tensors of a graph."""

from typing import Any


def is_tensor(node: Any) -> bool:
    """Returns whether the value of a node is a single tensor."""
    return hasattr(node.meta.get("val"), "untyped_storage")


def storages(node: Any) -> Any:
    """Returns the identifiers of the storages of a node's tensors, a set."""
    value = node.meta.get("val")
    values = value if isinstance(value, (list, tuple)) else [value]
    # Private: the public `data_ptr()` of fake tensors is always 0,
    # as of PyTorch 2.13.0.
    return {
        tensor.untyped_storage()._cdata
        for tensor in values
        if hasattr(tensor, "untyped_storage")
    }


def overwritten(node: Any) -> list[Any]:
    """Returns the list of nodes whose tensors a node writes into."""
    # Private: operators have no public signature, as of PyTorch 2.13.0.
    schema = getattr(node.target, "_schema", None)
    if schema is None or not schema.is_mutable:
        return []
    given = dict(zip(schema.arguments, node.args, strict=False))
    return [
        node.kwargs.get(argument.name, given.get(argument))
        for argument in schema.arguments
        if argument.alias_info is not None and argument.alias_info.is_write
    ]


class AliasAnalysis:
    """Storages that a graph writes into and those that it returns.

    Args:
        graph: `torch.fx.Graph` from `trace`.
    """

    def __init__(self, graph: Any) -> None:
        self.written: set[Any] = set()
        self.returned: set[Any] = set()
        for node in graph.nodes:
            for target in overwritten(node):
                self.written |= storages(target)
            if node.op == "output":
                for result in node.all_input_nodes:
                    self.returned |= storages(result)

    def is_written(self, node: Any) -> bool:
        """Returns whether the graph writes into any of the node's memory."""
        return bool(storages(node) & self.written)

    def escapes(self, node: Any) -> bool:
        """Returns whether the graph or its caller may write to the node."""
        return bool(storages(node) & (self.written | self.returned))
