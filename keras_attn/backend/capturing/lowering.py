"""Lowers the operations of a graph to fast Python functions."""

from collections.abc import Callable
from typing import Any

import keras

from keras_attn.backend.top_k import of_torch

if keras.backend.backend() == "torch":
    import torch

    aten = torch.ops.aten

# Functions of `torch` and methods of its tensors that take the arguments of the
# operation of the same name unchanged, in every overload. They parse them in
# half the time of `torch.ops` (as of PyTorch 2.13.0).
_FUNCTIONS = (
    "add addmm any argmax bitwise_and bmm clamp cos div embedding eq exp ge "
    "gelu gt index_select isinf layer_norm le log log_softmax logical_and "
    "logical_not logical_or lt masked_fill matmul max maximum mean minimum mm "
    "mul ne neg relu remainder rsqrt sigmoid silu sin softmax sqrt square sub "
    "sum tanh topk transpose unsqueeze where zeros_like"
).split()
_METHODS = ("expand index_copy_ permute reshape squeeze view").split()


def lower(node: Any) -> tuple[Callable[..., Any], Any, dict[str, Any]]:
    """Returns the fastest Python function that computes a node.

    Args:
        node: `torch.fx.Node` that calls an operation.

    Returns:
        The function, its positional and its keyword arguments.
    """
    args, kwargs = list(node.args), dict(node.kwargs)
    # Private: overloads have no public reference to their operator,
    # as of PyTorch 2.13.0.
    packet = getattr(node.target, "_overloadpacket", None)
    if packet is None:
        return node.target, args, kwargs
    if packet is torch.ops.keras_attn.top_k:
        return of_torch, args, kwargs
    name = packet.__name__
    if packet is aten.to and kwargs.get("layout", torch.strided) is not None:
        return _cast(node, args, kwargs)
    if packet is aten.scaled_dot_product_attention:
        function = torch.nn.functional.scaled_dot_product_attention
        return function, args, kwargs
    if name in _METHODS:
        return getattr(torch.Tensor, name), _tuples(args), kwargs
    if name in _FUNCTIONS and hasattr(torch, name):
        return getattr(torch, name), _tuples(args), kwargs
    return node.target, args, kwargs


def _cast(node, args, kwargs):
    layout = kwargs.pop("layout", torch.strided)
    kwargs.pop("pin_memory", None)
    if layout is not torch.strided:
        return node.target, node.args, node.kwargs
    return torch.Tensor.to, args, kwargs


def _tuples(args):
    # Tuples become constants of the generated function; lists would be built in
    # every call.
    return [
        tuple(value)
        if isinstance(value, list) and all(type(x) is int for x in value)
        else value
        for value in args
    ]
