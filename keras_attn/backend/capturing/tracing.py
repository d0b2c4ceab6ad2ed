"""Recording the operations of a function of tensors, without their values."""

import keras

if keras.backend.backend() == "torch":
    import torch
    from torch.fx.experimental.proxy_tensor import make_fx

_WAY_OUT = (
    'A model whose `torch_steps` is "plain" has its steps run as they are.'
)


def trace(function, variables, arguments, name):
    """Runs a function once on tensors without values and notes what it does.

    Variables are handed in like arguments, so that none of their values can
    end up in the graph; and since no tensor has values here, neither can a
    decision that was taken on them.

    Args:
        function: takes tensors, returns a list of tensors.
        variables: list of `keras.Variable` that the function reads.
        arguments: list of tensors, of which shape, strides, dtype and device
            count.
        name: str. What to call the function in a complaint.

    Returns:
        `torch.fx.GraphModule`, its inputs the values of the variables, then
        the arguments.

    Raises:
        RuntimeError: the function looks at values, draws random numbers, or
            uses a tensor that is neither argument nor variable.
    """

    def stateless(values, arguments):
        mapping = list(zip(variables, values, strict=True))
        with keras.StatelessScope(state_mapping=mapping):
            return function(*arguments)

    # New ones, each for itself: what is one tensor in this call may be two in
    # the next. Their memory is never touched.
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
    # What draws for its dropout only, as attention does, and has none.
    names = [argument.name for argument in node.target._schema.arguments]
    given = dict(zip(names, node.args, strict=False)) | node.kwargs
    return "dropout_p" not in names or given.get("dropout_p", 0.0) != 0.0


def _first_line(error):
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__
