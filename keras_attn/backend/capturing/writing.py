"""Generates a Python function that runs a graph."""

import itertools
import operator

import keras

from keras_attn.backend.capturing.fast_calls import fast_call
from keras_attn.backend.capturing.hoisting import (
    constant_nodes,
    idle_choices,
)

if keras.backend.backend() == "torch":
    from torch.fx import Node


def write(module, moving):
    """Generates a function that binds the weights and returns a step function.

        def bind(w0, w1, ...):
            ...                     # loop-invariant nodes
            def step(x0, x1, ...):
                ...                 # the other nodes, in their order
                return y0, y1, ...
            def plain_step(x0, x1, ...):
                ...                 # the same if nothing is masked
            return plain_step if ... else step

    The generated code consists of the operations only. Each value is a local
    variable, deleted after its last use.

    Args:
        module: `torch.fx.GraphModule`.
        moving: range. Indices of the inputs that change in every step: x0, x1,
            ...

    Returns:
        The function `bind`.
    """
    return _Writer(module, moving).function()


class _Writer:
    def __init__(self, module, moving):
        self.module = module
        self.graph = module.graph
        self.moving = moving
        self.scope = {"inf": float("inf"), "nan": float("nan")}
        self.numbers = itertools.count()
        self.constant = constant_nodes(self.graph, moving)
        self.same = {}

    def function(self):
        inputs = [n for n in self.graph.nodes if n.op == "placeholder"]
        names = [node.name for node in inputs]
        new = [names[number] for number in self.moving]
        same = [name for name in names if name not in new]
        lines = [f"def bind({', '.join(same)}):"]
        lines += self._body(lambda node: node in self.constant, 1, {})
        lines += self._step("step", new)
        self.same = idle_choices(self.graph, self.constant)
        if self.same:
            lines += self._step("plain_step", new)
            conditions = {node.args[0].name: None for node in self.same}
            seen = " and ".join(f"{name}.all()" for name in conditions)
            lines.append(f"    if {seen}: return plain_step")
        lines.append("    return step")
        exec("\n".join(lines), self.scope)
        return self.scope["bind"]

    def _step(self, name, inputs):
        (output,) = (n for n in self.graph.nodes if n.op == "output")
        return [
            f"    def {name}({', '.join(inputs)}):",
            *self._body(
                lambda node: (
                    node not in self.constant and node not in self.same
                ),
                2,
                self._last_uses(),
            ),
            f"        return {self._text(tuple(output.args[0]))}",
        ]

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
        """Returns, for each node, the tensors of the step last used there."""
        last = {}
        for node in self.graph.nodes:
            if node in self.constant or node in self.same:
                continue
            if node.op == "call_function":
                last[node] = node
            if node.op in ("call_function", "output"):
                for used in node.all_input_nodes:
                    last[self._meant(used)] = node
        found = {}
        for used, node in last.items():
            if used not in self.constant:
                found.setdefault(node, []).append(used)
        return found

    def _meant(self, node):
        while node in self.same:
            node = self.same[node]
        return node

    def _call(self, node):
        if node.target is operator.getitem:
            return f"{self._text(node.args[0])}[{self._text(node.args[1])}]"
        function, args, kwargs = fast_call(node)
        words = [self._text(value) for value in args]
        words += [f"{key}={self._text(v)}" for key, v in kwargs.items()]
        return f"{self._global(function)}({', '.join(words)})"

    def _text(self, value):
        if isinstance(value, Node):
            return self._meant(value).name
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
