"""Writing a graph down as a Python function that runs it."""

import itertools
import operator

import keras

from keras_attn.backend.capturing.fast_calls import fast_call
from keras_attn.backend.capturing.hoisting import constant_nodes

if keras.backend.backend() == "torch":
    from torch.fx import Node


def write(module, weights):
    """Writes a graph as a function that makes functions.

        def bind(w0, w1, ...):
            ...                     # what depends on the weights only
            def step(x0, x1, ...):
                ...                 # the rest, in its order
                return y0, y1, ...
            return step

    Nothing but the operations is left to run: a name is a local variable, and
    is given up behind its last use.

    Args:
        module: `torch.fx.GraphModule` whose first inputs are weights.
        weights: int. How many.

    Returns:
        The function `bind`.
    """
    return _Writer(module, weights).function()


class _Writer:
    def __init__(self, module, weights):
        self.module = module
        self.graph = module.graph
        self.weights = weights
        self.scope = {"inf": float("inf"), "nan": float("nan")}
        self.numbers = itertools.count()
        self.constant = constant_nodes(self.graph, weights)

    def function(self):
        inputs = [n for n in self.graph.nodes if n.op == "placeholder"]
        names = [node.name for node in inputs]
        lines = [f"def bind({', '.join(names[: self.weights])}):"]
        lines += self._body(lambda node: node in self.constant, 1, {})
        lines.append(f"    def step({', '.join(names[self.weights :])}):")
        lines += self._body(
            lambda node: node not in self.constant, 2, self._last_uses()
        )
        (output,) = (n for n in self.graph.nodes if n.op == "output")
        lines.append(f"        return {self._text(tuple(output.args[0]))}")
        lines.append("    return step")
        exec("\n".join(lines), self.scope)
        return self.scope["bind"]

    def _body(self, belongs, depth, last_uses):
        lines = []
        for node in self.graph.nodes:
            if not belongs(node):
                continue
            if node.op == "get_attr":
                constant = getattr(self.module, node.target)
                lines.append(f"{node.name} = {self._global(constant)}")
            elif node.op == "call_function":
                lines.append(f"{node.name} = {self._call(node)}")
                lines += [
                    f"del {used.name}" for used in last_uses.get(node, ())
                ]
        return ["    " * depth + line for line in lines]

    def _last_uses(self):
        """Tells which tensors of the step nobody needs behind each node."""
        last = {}
        for node in self.graph.nodes:
            if node.op == "call_function" and node not in self.constant:
                last[node] = node
                for used in node.all_input_nodes:
                    last[used] = node
            elif node.op == "output":
                for used in node.all_input_nodes:
                    last[used] = node
        found = {}
        for used, node in last.items():
            if used not in self.constant:
                found.setdefault(node, []).append(used)
        return found

    def _call(self, node):
        if node.target is operator.getitem:
            return f"{self._text(node.args[0])}[{self._text(node.args[1])}]"
        function, args, kwargs = fast_call(node)
        words = [self._text(value) for value in args]
        words += [f"{key}={self._text(v)}" for key, v in kwargs.items()]
        return f"{self._global(function)}({', '.join(words)})"

    def _text(self, value):
        if isinstance(value, Node):
            return value.name
        if isinstance(value, (list, tuple)):
            inside = "".join(f"{self._text(item)}, " for item in value)
            return f"({inside})" if isinstance(value, tuple) else f"[{inside}]"
        if value is None or isinstance(value, (bool, int, float, str)):
            return repr(value)
        return self._global(value)

    def _global(self, value):
        for name, known in self.scope.items():
            if known is value:
                return name
        name = f"g{next(self.numbers)}"
        self.scope[name] = value
        return name
