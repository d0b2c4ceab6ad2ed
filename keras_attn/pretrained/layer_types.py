"""Sliding windows in the config of a model."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from keras_attn.models import GPT, Encoder
    from keras_attn.pretrained.config import Config

SLIDING, FULL = "sliding_attention", "full_attention"


class Windows(NamedTuple):
    """Keys and defaults of a family's sliding windows.

    Args:
        default: int, or None. Default of `sliding_window`.
        types: function of a `Config`, the number of layers and the window, that
            returns the default of `layer_types`. None: all layers have the
            window, and `layer_types` must be missing.
        switch: bool. Whether only `use_sliding_window` enables the window.
        first: bool. Whether `max_window_layers` is the first layer with a
            window in a config without `layer_types`.
    """

    default: int | None
    types: Callable[..., list[str]] | None = None
    switch: bool = False
    first: bool = False


def read_windows(
    config: "Config", windows: Windows, num_layers: int
) -> tuple[int | tuple[int | None, ...] | None, list[str]]:
    """Reads the windows of the layers.

    Args:
        config: `Config`.
        windows: `Windows` of the family.
        num_layers: int.

    Returns:
        The argument `sliding_window` of a `GPT`, and the type of each layer.

    Raises:
        ValueError: an unsupported value.
    """
    window = config.optional("sliding_window", config.size, windows.default)
    if windows.types is None:
        config.only("layer_types", None)
        kind = FULL if window is None else SLIDING
        return window, [kind] * num_layers
    if windows.switch and not config.flag("use_sliding_window", False):
        window = None
    default = windows.types(config, num_layers, window)
    types = config.strings("layer_types", default)
    if len(types) != num_layers or not set(types) <= {SLIDING, FULL}:
        config.refuse(
            "layer_types",
            f"must hold {SLIDING!r} or {FULL!r} for each of the {num_layers} "
            "layers",
            types,
        )
    if SLIDING not in types:
        return None, types
    if window is None:
        config.refuse(
            "layer_types", f"must be {FULL!r} without a `sliding_window`", types
        )
    return tuple(window if kind == SLIDING else None for kind in types), types


def layers_with_rope(config: "Config", num_layers: int) -> list[int]:
    """Returns `no_rope_layers` of SmolLM3, which are 1 in layers with rotation.

    Args:
        config: `Config`.
        num_layers: int.

    Raises:
        ValueError: another list.
    """
    every = config.size("no_rope_layer_interval", 4)
    used = config.values.get("no_rope_layers")
    if used is None:
        return [int((i + 1) % every != 0) for i in range(num_layers)]
    if (
        not isinstance(used, list)
        or len(used) != num_layers
        or any(one not in (0, 1) for one in used)
    ):
        config.refuse(
            "no_rope_layers",
            f"must hold 0 or 1 for each of the {num_layers} layers",
        )
    return used


def write_windows(
    family: str, model: "GPT", windows: Windows
) -> dict[str, Any]:
    """Returns the keys of a config for the windows of the layers.

    Args:
        family: str. Name of the family, for messages.
        model: `GPT`.
        windows: `Windows` of the family.

    Raises:
        ValueError: the family has no such windows.
    """
    layers = windows_of(model)
    sizes = {window for window in layers if window is not None}
    if len(sizes) > 1 or (windows.types is None and len(set(layers)) > 1):
        raise ValueError(
            f"A {family} model must have one sliding_window"
            + (" for all layers" if windows.types is None else "")
            + f". Received: sliding_window={model.sliding_window!r}"
        )
    written = {"sliding_window": min(sizes, default=None)}
    if windows.types is None:
        return written
    types = [FULL if window is None else SLIDING for window in layers]
    written["layer_types"] = types
    if windows.switch:
        written["use_sliding_window"] = bool(sizes)
    if windows.first:
        # For versions of transformers without `layer_types`.
        written["max_window_layers"] = [*types, SLIDING].index(SLIDING)
    return written


def windows_of(model: "GPT | Encoder") -> tuple[int | None, ...]:
    """Returns the window of each layer of a model."""
    windows = model.sliding_window
    if isinstance(windows, tuple):
        return windows
    return (windows,) * model.num_layers
