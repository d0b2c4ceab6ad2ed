"""One step of a loop, captured once and replayed without Keras's layers."""

import threading
import types
import weakref

import keras

from keras_attn.backend.capturing.cleaning import clean
from keras_attn.backend.capturing.nest import (
    flattener,
    packer,
    structure,
)
from keras_attn.backend.capturing.tracing import trace
from keras_attn.backend.capturing.writing import write

if keras.backend.backend() == "torch":
    import torch

_captures = weakref.WeakKeyDictionary()
_lock = threading.RLock()


def captured_step(function, variables):
    """Prepares a step of a loop for one run of that loop.

    On PyTorch Keras's layers take ten times as long as the operations that
    they call. The step is run once on tensors without values, which leaves a
    graph of its operations; replayed, nothing of Keras is left. One graph
    serves all runs, for each set of shapes, dtypes and devices of the
    arguments. JAX and TensorFlow compile the loop, and get the function as it
    is.

    Weights are those that the variables hold when a run makes its first step:
    every `assign`, training step or load before that counts. A layer that was
    quantized, got LoRA or another dtype policy is captured anew. What else is
    no tensor, such as an attribute of a layer, is fixed by the first capture,
    as in any compiled program.

    Tensors into which the function writes are the caller's, written in place;
    each must be given once. The step runs without gradients.

    Args:
        function: takes nests of tensors, returns a nest of tensors. A method
            (captured once for its object), or a function that is kept.
        variables: list of `keras.Variable` that the function reads.

    Returns:
        A callable with the arguments and results of `function`, for one run:
        what depends on the weights alone is computed in its first call.

    Raises:
        RuntimeError: from the callable, where the function looks at the values
            of tensors, draws random numbers or uses a tensor that is neither
            an argument nor a variable.
    """
    if keras.backend.backend() != "torch":
        return function
    return _Run(function, variables, _captures_of(function, variables))


class _Captures:
    """Keeps the graphs of one function while its variables are the same.

    Args:
        signature: tuple. What a graph depends on besides its arguments.
        variables: list of `keras.Variable`, kept: a freed one would lend its
            identity to another.
    """

    def __init__(self, signature, variables):
        self.signature = signature
        self.variables = list(variables)
        self.graphs = {}


class _Run:
    def __init__(self, function, variables, captures):
        self.function = function
        self.variables = variables
        self.captures = captures
        self.flatten = flattener(None)
        self.steps = {}

    def __call__(self, *args):
        leaves = self.flatten(args)
        if leaves is None:
            self.flatten = flattener(args)
            self.steps = {}
            leaves = self.flatten(args)
        key = tuple([_kind(leaf) for leaf in leaves])
        with torch.inference_mode():
            step = self.steps.get(key)
            if step is None:
                step = self.steps[key] = self._bound(args, leaves, key)
            run, pack = step
            return pack(run(*leaves))

    def _bound(self, args, leaves, key):
        """Returns the graph for such arguments, with the weights of now."""
        key = structure(args), key, _autocast()
        with _lock:
            graph = self.captures.graphs.get(key)
            if graph is None:
                graph = _capture(self.function, self.variables, args, leaves)
                self.captures.graphs[key] = graph
        bind, pack = graph
        return bind(*(variable.value for variable in self.variables)), pack


def _capture(function, variables, args, leaves):
    name = f"`{getattr(function, '__qualname__', type(function).__name__)}`"
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

    module = trace(flat, variables, leaves, name)
    clean(module.graph)
    return write(module, len(variables)), packer(results)


def _captures_of(function, variables):
    owner, key = function, None
    if isinstance(function, types.MethodType):
        owner, key = function.__self__, function.__func__
    signature = (
        tuple((id(v), v.dtype, str(v.value.device)) for v in variables),
        _policies(owner),
    )
    with _lock:
        kept = _captures.setdefault(owner, {})
        if key not in kept or kept[key].signature != signature:
            kept[key] = _Captures(signature, variables)
        return kept[key]


def _policies(owner):
    if not isinstance(owner, keras.Layer):
        return ()
    return tuple(
        (layer.dtype_policy.name, layer.dtype_policy.quantization_mode)
        for layer in owner._flatten_layers()
    )


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
