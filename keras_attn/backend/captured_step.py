"""Captures one step of a loop as a graph that runs without Keras's layers."""

import functools
import operator
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import keras

from keras_attn.backend.capturing.codegen import generate_step
from keras_attn.backend.capturing.nest import (
    flattener,
    packer,
    structure,
)
from keras_attn.backend.capturing.simplify import simplify
from keras_attn.backend.capturing.tracing import trace
from keras_attn.typing import TensorLike

if TYPE_CHECKING:
    from keras_attn.backend.owned_programs import OwnedPrograms


if keras.backend.backend() == "torch":
    import torch

_lock = threading.RLock()


class Capturing:
    """Captures the step functions of a loop, for one run of the loop.

    On PyTorch, Keras's layers take ten times as long as the operations that
    they call (as of Keras 3.15.1). A function is traced once on fake tensors;
    the resulting graph runs without Keras. One graph per combination of shapes,
    dtypes and devices of the arguments is shared by all runs. JAX and
    TensorFlow compile the whole loop, so there the function is returned
    unchanged.

    A run uses the weights that the variables hold at its first step, including
    every earlier `assign`, training step or load. If a Python attribute has
    changed, such as one of a layer, the function is captured again.

    Args:
        programs: `OwnedPrograms` of the object that the functions read, whose
            lifetime the graphs have.
        others: `OwnedPrograms` of another object that the functions read.
            Default None.
    """

    def __init__(
        self, programs: "OwnedPrograms", others: "OwnedPrograms | None" = None
    ) -> None:
        self.programs = programs
        self.others = others

    def step(
        self,
        function: Callable[..., Any],
        key: TensorLike,
        way: str = "captured",
        fixed: int = 0,
    ) -> Callable[..., Any]:
        """Prepares one step function.

        Arguments that the function writes into are modified in place, and each
        must be passed only once. Runs without gradients.

        Args:
            function: takes nests of tensors, returns a nest of tensors.
            key: hashable. Identifies the function among those of the object.
            way: `"captured"`; `"compiled"`: the graph is compiled by
                `torch.compile`, which takes a minute and needs a C++ compiler
                (as of PyTorch 2.13.0);
                `"plain"`: the function itself.
            fixed: int. Number of trailing arguments that are the same objects
                in every call of a run. Default 0.

        Returns:
            A callable with the arguments and results of `function`, for one
            run: whatever depends only on the weights and the fixed arguments is
            computed in its first call.

        Raises:
            RuntimeError: from the callable, if the function reads the values
                of tensors, draws random numbers or uses a tensor that is
                neither an argument nor a variable.
        """
        if keras.backend.backend() != "torch" or way == "plain":
            return function
        programs = self.programs
        with _lock:
            graphs = programs.get((way, key), dict)
        trace = programs.traced(functools.partial(_trace, function))
        variables = programs.variables
        if self.others is not None:
            trace = self.others.traced(trace)
            variables = joined_variables(programs, self.others)
        return _Run(variables, trace, graphs, _MAKERS[way], fixed)


def joined_variables(
    programs: "OwnedPrograms", others: "OwnedPrograms"
) -> list[Any]:
    """Returns the variables of both, each of them once."""
    every = [*programs.variables, *others.variables]
    return list({id(variable): variable for variable in every}.values())


class _Run:
    def __init__(self, variables, trace, graphs, make, fixed):
        self.variables = variables
        self.trace = trace
        self.graphs = graphs
        self.make = make
        self.fixed = fixed
        self.given = ()
        self.flatten = flattener(None)
        self.steps = {}
        # State of the last call, if its result may be the next call's argument.
        self.step = self.made = self.flat = None

    def __call__(self, *args):
        moving = len(args) - self.fixed
        given = args[moving:]
        if not all(map(operator.is_, given, self.given)):
            self.made, self.flatten = None, flattener(None)
        with torch.inference_mode():
            if moving == 1 and args[0] is self.made:
                run, pack = self.step
                self.flat = run(*self.flat)
                self.made = pack(self.flat)
                return self.made
            return self._look(args[:moving], given)

    def _look(self, args, given):
        """Runs a step after looking up its graph by the arguments' kinds."""
        leaves = self.flatten(args)
        if leaves is None:
            self.given = given
            self.flatten = flattener(args)
            self.steps = {}
            leaves = self.flatten(args)
        key = tuple(map(_kind, leaves))
        step = self.steps.get(key)
        if step is None:
            step = self.steps[key] = self._bound(args)
        run, pack = step
        flat = run(*leaves)
        made = pack(flat)
        self.made = None
        if structure((made,)) == structure(args):
            if tuple(map(_kind, flat)) == key:
                self.step, self.made, self.flat = step, made, flat
        return made

    def _bound(self, args):
        """Returns the graph for these arguments, bound to current weights."""
        args = (*args, *self.given)
        given = flattener(self.given)(self.given)
        leaves = flattener(args)(args)
        kinds = tuple(map(_kind, leaves))
        key = structure(args), kinds, self.fixed, _autocast()
        with _lock:
            graph = self.graphs.get(key)
            if graph is None:
                graph = self._capture(args, leaves, len(given))
                self.graphs[key] = graph
        bind, pack = graph
        values = [variable.value for variable in self.variables]
        return bind(*values, *given), pack

    def _capture(self, args, leaves, given):
        module, pack = self.trace(self.variables, args, leaves)
        simplify(module.graph)
        first = len(self.variables)
        moving = range(first, first + len(leaves) - given)
        return self.make(module, moving), pack


def _trace(function, variables, args, leaves):
    """Returns the graph of a call, and a function that packs its results."""
    name = getattr(function, "__qualname__", type(function).__name__)
    name = f"`{name}`"
    for leaf in leaves:
        if not isinstance(leaf, torch.Tensor):
            raise RuntimeError(
                f"{name} must be given nests of tensors, to be captured. "
                f"Received: {type(leaf).__name__}"
            )
    pack = packer(args)
    results = None

    def flat(*leaves):
        nonlocal results
        results = function(*pack(leaves))
        return flattener(results)(results)

    return trace(flat, variables, leaves, name), packer(results)


def _compile(module, moving):
    """Compiles a graph with `torch.compile`; called like `generate_step`."""
    module.recompile()
    program = torch.compile(module, dynamic=False)

    def bind(*bound):
        values = list(bound[: moving.start])
        given = list(bound[moving.start :])
        return lambda *leaves: program(values, [*leaves, *given])

    return bind


_MAKERS = {"captured": generate_step, "compiled": _compile}


def _kind(leaf):
    if isinstance(leaf, torch.Tensor):
        return leaf.shape, leaf.dtype, leaf.device
    return type(leaf)


def _autocast():
    kinds = ("cpu", "cuda") if torch.cuda.is_available() else ("cpu",)
    return tuple(
        torch.get_autocast_dtype(kind)
        for kind in kinds
        if torch.is_autocast_enabled(kind)
    )
