"""Traces the operations of a function of tensors, without values."""

from collections.abc import Callable, Sequence
from typing import Any

import keras

from keras_attn.typing import TensorLike

if keras.backend.backend() == "torch":
    import torch

    # Experimental, without a public name, as of PyTorch 2.13.0.
    from torch.fx.experimental.proxy_tensor import make_fx
    from torch.overrides import TorchFunctionMode

    # Private: it has no public name as of PyTorch 2.13.0.
    _untraced = torch._C.DisableTorchFunction
    _ATTRIBUTES = {
        torch.Tensor.device.__get__,
        torch.Tensor.dtype.__get__,
        torch.Tensor.is_meta.__get__,
        torch.Tensor.ndim.__get__,
        torch.Tensor.shape.__get__,
    }

    class _SkipConversions(TorchFunctionMode):
        """Skips conversions to the dtype or device that a tensor has already.

        Keras 3.15.1 converts each operand of each operation: it compares the
        device with a str, which never equals a `torch.device`. Tracing these
        conversions takes a third of the time of a capture.
        """

        def __torch_function__(self, func, types, args=(), kwargs=None):
            if func in _ATTRIBUTES:
                with _untraced():
                    return func(*args)
            if func is torch.Tensor.to and len(args) == 2 and not kwargs:
                x, kind = args
                kind = torch.device(kind) if isinstance(kind, str) else kind
                with _untraced():
                    if kind in (x.dtype, x.device):
                        return x
            return func(*args, **(kwargs or {}))


_WAY_OUT = (
    'A model whose `torch_steps` is "plain" has its steps run as they are.'
)


def trace(
    function: Callable[..., Any],
    variables: Sequence[keras.Variable],
    arguments: Sequence[TensorLike],
    name: str,
) -> Any:
    """Traces a function on fake tensors.

    Variables are passed like arguments, so that their values cannot end up in
    the graph. No tensor has values here, so the graph cannot depend on them.

    Args:
        function: takes tensors, returns a list of tensors.
        variables: list of `keras.Variable` that the function reads.
        arguments: list of tensors. Their values are not read.
        name: str. Name of the function in error messages.

    Returns:
        `torch.fx.GraphModule` whose inputs are the values of the variables,
        then the arguments.

    Raises:
        RuntimeError: if the function reads values, draws random numbers, or
            uses a tensor that is neither an argument nor a variable.
    """

    def stateless(values, arguments):
        mapping = list(zip(variables, values, strict=True))
        # First, because the scope converts the values of all variables.
        with _SkipConversions(), keras.StatelessScope(state_mapping=mapping):
            return function(*arguments)

    # One new tensor per argument: arguments that share memory in this call may
    # not in the next. The memory is never touched.
    unwritten = [
        torch.empty_strided(x.shape, x.stride(), dtype=x.dtype, device=x.device)
        for x in arguments
    ]
    values = [variable.value for variable in variables]
    record = make_fx(stateless, tracing_mode="fake", pre_dispatch=True)
    try:
        with torch.no_grad():
            module = record(values, unwritten)
    except (RuntimeError, AssertionError) as error:
        raise RuntimeError(
            f"{name} cannot be captured as a graph: it must not look at the "
            "values of tensors, and must take every tensor from its arguments "
            f"or from its variables. {_WAY_OUT} "
            f"PyTorch says: {_first_line(error)}"
        ) from error
    for node in module.graph.nodes:
        if _draws(node):
            raise RuntimeError(
                f"{name} cannot be captured as a graph: it must not draw "
                f"random numbers. {_WAY_OUT} Received: {node.target}"
            )
    return module


def _draws(node):
    tags = getattr(node.target, "tags", ())
    if torch.Tag.nondeterministic_seeded not in tags:
        return False
    # Attention draws only for its dropout, which may be off.
    # Private: operators have no public signature, as of PyTorch 2.13.0.
    names = [argument.name for argument in node.target._schema.arguments]
    given = dict(zip(names, node.args, strict=False)) | node.kwargs
    return "dropout_p" not in names or given.get("dropout_p", 0.0) != 0.0


def _first_line(error):
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__
