"""Checks that a model fits a published family."""

from typing import Any

# Options of blocks that no supported family has.
PLAIN_BLOCKS = {
    "key_dim": None,
    "num_key_value_heads": None,
    "use_bias": True,
    "sliding_window": None,
    "normalization": "layer_norm",
    "normalize_output": False,
    "use_parallel_residual": False,
    "qk_norm": None,
    "attention_soft_cap": None,
    "use_sinks": False,
    "layer_scale": None,
    "stochastic_depth": 0.0,
    "gate_limit": None,
    "use_qkv_bias": None,
}


def expect(family: str, model: Any, **expected: Any) -> None:
    """Raises ValueError if a model does not fit its family.

    Args:
        family: str. Name of the family.
        model: the model.
        **expected: the required values of its attributes.

    Raises:
        ValueError: an attribute has another value.
    """
    for name, value in expected.items():
        found = getattr(model, name)
        if found != value:
            raise ValueError(
                f"A {family} model must have {name}={value!r}. "
                f"Received: {name}={found!r}"
            )
