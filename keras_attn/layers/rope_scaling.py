"""Rotary frequencies for sequences that are longer than in training."""

import copy
import math
from typing import Any

import numpy as np
from keras import ops

from keras_attn import checks

_LENGTH = "original_max_position_embeddings"
# Required and optional keys of each type, as in Hugging Face configs.
_KEYS = {
    "default": ((), ()),
    "linear": (("factor",), ()),
    "dynamic": (("factor", _LENGTH), ()),
    "yarn": (
        ("factor", _LENGTH),
        (
            "attention_factor",
            "beta_fast",
            "beta_slow",
            "mscale",
            "mscale_all_dim",
            "truncate",
        ),
    ),
    "llama3": (
        ("factor", "low_freq_factor", "high_freq_factor", _LENGTH),
        (),
    ),
    "longrope": (
        ("short_factor", "long_factor", _LENGTH),
        ("factor", "attention_factor"),
    ),
}
# Keys of Hugging Face configs that are arguments of `RotaryPosition`.
_ARGUMENTS = {
    "rope_theta": "max_wavelength",
    "partial_rotary_factor": "rotary_dim",
}


class RopeScaling:
    """Rotary frequencies that one of the published rules has scaled.

    Args:
        scaling: dict, as documented in `RotaryPosition`.
        max_wavelength: float > 0. Base of the frequencies.

    Raises:
        ValueError: an unknown `rope_type`, an unknown or missing key, or a
            value out of range.

    Examples:
        >>> from keras_attn.layers.rope_scaling import RopeScaling
        >>> scaling = {"rope_type": "linear", "factor": 4.0}
        >>> RopeScaling(scaling, 100.0).frequencies(4)
        ((0.25, 0.025),)
    """

    def __init__(self, scaling: dict[str, Any], max_wavelength: float) -> None:
        self.config: dict[str, Any] = _checked(scaling)
        self.rope_type: str = self.config["rope_type"]
        self._base = float(max_wavelength)
        # Computed before a program is traced: NumPy would split a program of
        # `torch.compile` (as of PyTorch 2.13.0).
        self._frequencies = {}
        if self.rope_type == "yarn" and self._base <= 1:
            raise ValueError(
                "`max_wavelength` must be greater than 1 if the `rope_type` is "
                f"'yarn'. Received: max_wavelength={max_wavelength!r}"
            )

    @property
    def original_length(self) -> int | None:
        """The length of the sequences in training, in tokens."""
        return self.config.get(_LENGTH)

    @property
    def by_length(self) -> bool:
        """Whether frequencies depend on the length of the sequence."""
        return self.rope_type in ("dynamic", "longrope")

    @property
    def attention_factor(self) -> float:
        """The factor of sines and cosines."""
        config = self.config
        if self.rope_type not in ("yarn", "longrope"):
            return 1.0
        if "attention_factor" in config:
            return float(config["attention_factor"])
        if self.rope_type == "longrope":
            growth = math.log(config["factor"]) / math.log(config[_LENGTH])
            return math.sqrt(1 + growth)
        if "mscale" in config:
            return self._mscale(config["mscale"]) / self._mscale(
                config["mscale_all_dim"]
            )
        return self._mscale(1.0)

    def _mscale(self, mscale):
        return 0.1 * mscale * math.log(self.config["factor"]) + 1.0

    def check_width(self, width: int) -> None:
        """Raises ValueError if the scaling does not fit R features.

        Afterwards, `frequencies(width)` is a lookup.
        """
        if self.rope_type == "dynamic" and width < 4:
            raise ValueError(
                "`scaling` with the `rope_type` 'dynamic' must have at least 4 "
                f"rotated features. Received: {width}"
            )
        for key in ("short_factor", "long_factor"):
            factors = self.config.get(key)
            if factors is not None and len(factors) != width // 2:
                raise ValueError(
                    f"`scaling` must have a {key!r} with one number for each "
                    f"of the {width // 2} pairs of rotated features. Received: "
                    f"{len(factors)} numbers"
                )
        self._frequencies[width] = self._scaled(width)

    def frequencies(self, width: int) -> tuple[tuple[float, ...], ...]:
        """Returns the angles per token, in radians.

        Args:
            width: int, even. R, the number of rotated features.

        Returns:
            One tuple of R / 2 floats; two for LongRoPE: for sequences up to
            the original length, and for longer ones. For dynamic scaling,
            those of sequences up to the original length.
        """
        found = self._frequencies.get(width)
        return self._scaled(width) if found is None else found

    def _scaled(self, width):
        plain = self._base ** (-np.arange(0, width, 2, dtype="float64") / width)
        config = self.config
        if self.rope_type == "longrope":
            scaled = [
                plain / np.array(config[key], "float64")
                for key in ("short_factor", "long_factor")
            ]
        elif self.rope_type == "linear":
            scaled = [plain / config["factor"]]
        elif self.rope_type == "yarn":
            scaled = [self._yarn(plain, width)]
        elif self.rope_type == "llama3":
            scaled = [self._llama3(plain)]
        else:
            scaled = [plain]
        return tuple(tuple(row.tolist()) for row in scaled)

    def growth(self, lengths: Any) -> Any:
        """Returns the growth of the base, of dynamic scaling.

        Args:
            lengths: int32 tensor, in tokens.

        Returns:
            Float32 tensor; 1 up to the original length.
        """
        factor, original = self.config["factor"], self.config[_LENGTH]
        beyond = ops.cast(ops.maximum(lengths - original, 0), "float32")
        return 1.0 + beyond * (factor / original)

    def as_dict(self) -> dict[str, Any]:
        """Returns a copy of the scaling."""
        return copy.deepcopy(self.config)

    def _yarn(self, plain, width):
        config = self.config
        low, high = (
            width
            * math.log(config[_LENGTH] / (turns * 2 * math.pi))
            / (2 * math.log(self._base))
            for turns in (
                config.get("beta_fast", 32),
                config.get("beta_slow", 1),
            )
        )
        if config.get("truncate", True):
            low, high = math.floor(low), math.ceil(high)
        low, high = max(low, 0), min(high, width - 1)
        if low == high:
            high += 0.001  # as in transformers
        ramp = np.clip((np.arange(width // 2) - low) / (high - low), 0, 1)
        return plain / config["factor"] * ramp + plain * (1 - ramp)

    def _llama3(self, plain):
        config = self.config
        factor = config["factor"]
        low, high = config["low_freq_factor"], config["high_freq_factor"]
        turns = config[_LENGTH] * plain / (2 * math.pi)
        smooth = np.clip((turns - low) / (high - low), 0, 1)
        return (1 - smooth) * plain / factor + smooth * plain


def _checked(scaling):
    """Returns a copy without the optional keys that are None."""
    if not isinstance(scaling, dict):
        raise ValueError(
            "`scaling` must be a dict with the keys of `rope_parameters` in "
            "Hugging Face configs, such as {'rope_type': 'linear', 'factor': "
            f"4.0}}. Received: scaling={checks.shown(scaling)}"
        )
    if "rope_type" not in scaling:
        raise ValueError(
            "`scaling` must have the key 'rope_type'. "
            f"Received: {_listed(scaling)}"
        )
    rope_type = scaling["rope_type"]
    if not isinstance(rope_type, str) or rope_type not in _KEYS:
        raise ValueError(
            f"`scaling` must have one of the types {_listed(_KEYS)}. "
            f"Received: rope_type={checks.shown(rope_type)}"
        )
    required, optional = _KEYS[rope_type]
    for key in scaling:
        if key in _ARGUMENTS:
            raise ValueError(
                f"`scaling` must not have the key {key!r}: it is the argument "
                f"`{_ARGUMENTS[key]}`. Received: {_listed(scaling)}"
            )
        if key not in ("rope_type", *required, *optional):
            raise ValueError(
                f"`scaling` must only have keys of {rope_type!r}: "
                f"{_listed(('rope_type', *required, *optional))}. "
                f"Received: {checks.shown(key)}"
            )
    config = {
        key: value
        for key, value in scaling.items()
        if value is not None or key not in optional
    }
    for key in required:
        if key not in config:
            raise ValueError(
                f"`scaling` must have the key {key!r} if the `rope_type` is "
                f"{rope_type!r}. Received: {_listed(scaling)}"
            )
    try:
        for key, value in config.items():
            config[key] = _checked_value(key, value)
    except ValueError as error:
        raise ValueError(
            f"`scaling` must have valid numbers: {error}"
        ) from None
    _check_together(config)
    return config


def _checked_value(key, value):
    name = f"scaling[{key!r}]"
    if key == _LENGTH:
        return checks.integer(name, value, 2)
    if key == "truncate":
        return checks.boolean(name, value)
    if key in ("short_factor", "long_factor"):
        if not isinstance(value, (list, tuple)):
            raise ValueError(
                f"`{name}` must be a list of numbers. "
                f"Received: {checks.shown(value)}"
            )
        return [checks.positive(name, number) for number in value]
    if key == "rope_type":
        return value
    checks.positive(name, value)
    if key == "factor" and value < 1:
        raise ValueError(
            f"`{name}` must be at least 1. Received: {checks.shown(value)}"
        )
    return value


def _check_together(config):
    rope_type = config["rope_type"]
    if rope_type == "longrope" and not config.keys() & {
        "factor",
        "attention_factor",
    }:
        raise ValueError(
            "`scaling` must have the key 'factor' or 'attention_factor' if the "
            f"`rope_type` is 'longrope'. Received: {_listed(config)}"
        )
    if ("mscale" in config) != ("mscale_all_dim" in config) or (
        "mscale" in config and "attention_factor" in config
    ):
        raise ValueError(
            "`scaling` must have 'mscale' and 'mscale_all_dim' together, and "
            f"not with 'attention_factor'. Received: {_listed(config)}"
        )
    for below, above in (
        ("low_freq_factor", "high_freq_factor"),
        ("beta_slow", "beta_fast"),
    ):
        defaults = {"beta_slow": 1, "beta_fast": 32}
        low = config.get(below, defaults.get(below))
        high = config.get(above, defaults.get(above))
        if low is not None and not low < high:
            raise ValueError(
                f"`scaling` must have a {above!r} greater than its {below!r}, "
                f"{low}. Received: {high}"
            )


def _listed(keys):
    return ", ".join(repr(key) for key in keys)
