"""Constructor arguments that models pass on to their blocks."""

# Arguments with the same name in models and blocks, stored in configs as is.
BLOCK_OPTIONS = (
    "num_heads",
    "intermediate_dim",
    "dropout",
    "attention_dropout",
    "activation_dropout",
    "gated",
    "normalize_first",
    "epsilon",
)


def block_options(model):
    """Returns the arguments of the blocks of a model.

    Args:
        model: has `activation` and each of `BLOCK_OPTIONS` as attributes.

    Returns:
        Dict of keyword arguments for `EncoderBlock` or `DecoderBlock`.
    """
    options = {name: getattr(model, name) for name in BLOCK_OPTIONS}
    return options | {
        "activation": model.activation,
        "dtype": model.dtype_policy,
    }
