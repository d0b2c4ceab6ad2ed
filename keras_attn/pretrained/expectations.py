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
    "skip_first_norm": False,
    "num_experts": None,
}


class Mismatch(ValueError):
    """A model does not fit a family.

    Args:
        message: str.
        count: int. Number of attributes with another value.
    """

    def __init__(self, message: str, count: int) -> None:
        super().__init__(message)
        self.count: int = count


def expect(family: str, model: Any, **expected: Any) -> None:
    """Raises ValueError if a model does not fit its family.

    Args:
        family: str. Name of the family.
        model: the model.
        **expected: the required values of its attributes.

    Raises:
        Mismatch: an attribute has another value.
    """
    wrong = [
        name
        for name, value in expected.items()
        if getattr(model, name) != value
    ]
    if wrong:
        name = wrong[0]
        raise Mismatch(
            f"A {family} model must have {name}={expected[name]!r}. "
            f"Received: {name}={getattr(model, name)!r}",
            len(wrong),
        )
