"""Generates a Python function that runs a graph."""

import itertools
import operator
from collections.abc import Callable
from typing import Any

import keras

from keras_attn.backend.capturing.loop_invariants import (
    loop_invariant_nodes,
    redundant_selects,
)
from keras_attn.backend.capturing.lowering import lower

if keras.backend.backend() == "torch":
    from torch.fx import Node


def generate_step(module: str, moving: range) -> Callable[..., Any]:
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
    return _Codegen(module, moving).function()


class _Codegen:
    def __init__(self, module, moving):
        self.module = module
        self.graph = module.graph
        self.moving = moving
        self.scope = {"inf": float("inf"), "nan": float("nan")}
        self.counter = itertools.count()
        self.invariant = loop_invariant_nodes(self.graph, moving)
        self.replaced = {}

    def function(self):
        inputs = [n for n in self.graph.nodes if n.op == "placeholder"]
        names = [node.name for node in inputs]
        step_inputs = [names[index] for index in self.moving]
        bound = [name for name in names if name not in step_inputs]
        lines = [f"def bind({', '.join(bound)}):"]
        lines += self._body(lambda node: node in self.invariant, 1, {})
        lines += self._step("step", step_inputs)
        self.replaced = redundant_selects(self.graph, self.invariant)
        if self.replaced:
            lines += self._step("plain_step", step_inputs)
            conditions = {node.args[0].name: None for node in self.replaced}
            unmasked = " and ".join(f"{name}.all()" for name in conditions)
            lines.append(f"    if {unmasked}: return plain_step")
        lines.append("    return step")
        exec("\n".join(lines), self.scope)
        return self.scope["bind"]

    def _step(self, name, inputs):
        (output,) = (n for n in self.graph.nodes if n.op == "output")
        return [
            f"    def {name}({', '.join(inputs)}):",
            *self._body(
                lambda node: (
                    node not in self.invariant and node not in self.replaced
                ),
                2,
                self._last_uses(),
            ),
            f"        return {self._source(tuple(output.args[0]))}",
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
            if node in self.invariant or node in self.replaced:
                continue
            if node.op == "call_function":
                last[node] = node
            if node.op in ("call_function", "output"):
                for used in node.all_input_nodes:
                    last[self._resolve(used)] = node
        found = {}
        for used, node in last.items():
            if used not in self.invariant:
                found.setdefault(node, []).append(used)
        return found

    def _resolve(self, node):
        while node in self.replaced:
            node = self.replaced[node]
        return node

    def _call(self, node):
        if node.target is operator.getitem:
            return f"{self._source(node.args[0])}[{self._source(node.args[1])}]"
        function, args, kwargs = lower(node)
        arguments = [self._source(value) for value in args]
        arguments += [f"{key}={self._source(v)}" for key, v in kwargs.items()]
        return f"{self._global(function)}({', '.join(arguments)})"

    def _source(self, value):
        if isinstance(value, Node):
            return self._resolve(value).name
        if isinstance(value, (list, tuple)):
            inside = "".join(f"{self._source(item)}, " for item in value)
            return f"({inside})" if isinstance(value, tuple) else f"[{inside}]"
        if value is None or isinstance(value, (bool, int, float, str)):
            return repr(value)
        return self._global(value)

    def _global(self, value):
        for name, known in self.scope.items():
            if known is value:
                return name
        name = f"g{next(self.counter)}"
        self.scope[name] = value
        return name
