"""What a model of blocks hands on to each of them."""

# Arguments that models and blocks name alike, and that a config holds as is.
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
    """Returns the arguments of a model's blocks.

    Args:
        model: has each of `BLOCK_OPTIONS` as an attribute, and `activation`.

    Returns:
        Dict of keyword arguments for `EncoderBlock` or `DecoderBlock`.
    """
    options = {name: getattr(model, name) for name in BLOCK_OPTIONS}
    return options | {
        "activation": model.activation,
        "dtype": model.dtype_policy,
    }
