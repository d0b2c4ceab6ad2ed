"""Argument checks of the cache: static ones, which read no tensor."""

import math
from typing import Any

from keras_attn import checks
from keras_attn.typing import TensorLike

# 128 GiB of bfloat16.
_MOST_FEATURES = 2**36
_DTYPES = "float16", "bfloat16", "float32", "float64"


def check_size(
    rows: Any,
    length: int,
    layers: int,
    heads: int,
    key_dim: int,
    value_dim: int,
    dtype: str,
) -> None:
    """Raises ValueError unless a cache of this size can be allocated."""
    checks.count("rows", rows, 0)
    checks.count("length", length, 0)
    sizes = {
        "layers": layers,
        "heads": heads,
        "key_dim": key_dim,
        "value_dim": value_dim,
    }
    for name, size in sizes.items():
        checks.integer(name, size, 1, 2**31 - 1)
    checks.choice("dtype", dtype, _DTYPES)
    known = [size for size in (rows, length) if isinstance(size, int)]
    features = math.prod(known) * layers * heads * (key_dim + value_dim)
    if features > _MOST_FEATURES:
        raise ValueError(
            "`rows`, `length`, `layers`, `heads`, `key_dim` and `value_dim` "
            f"must be at most {_MOST_FEATURES} features in all. "
            f"Received: {features}"
        )


def layer_windows(sliding_window: Any, layers: int) -> list[int | None]:
    """Returns the sliding window of each layer, else raises ValueError."""
    several = isinstance(sliding_window, (list, tuple))
    windows = list(sliding_window) if several else [sliding_window] * layers
    if len(windows) != layers:
        raise ValueError(
            f"`sliding_window` must have one value for each of the {layers} "
            f"layers. Received: {len(windows)} values"
        )
    for window in windows:
        if window is not None:
            checks.positive_int("sliding_window", window)
    return windows


def check_layer(layer: Any, count: int) -> int:
    """Returns the index of a layer, else raises ValueError."""
    if isinstance(layer, bool) or not isinstance(layer, int):
        raise ValueError(
            f"`layer` must be an integer. Received: layer={checks.shown(layer)}"
        )
    if not 0 <= layer < count:
        raise ValueError(
            f"`layer` must lie in [0, {count}), the layers of the cache. "
            f"Received: layer={layer}"
        )
    return layer


def check_features(
    name: str, tensor: TensorLike, shape: tuple[int, ...]
) -> None:
    """Raises ValueError unless a tensor is float of a shape with None."""
    checks.tensor(name, tensor, "a float tensor")
    if "float" not in str(tensor.dtype) or not checks.fits(tensor.shape, shape):
        expected = ", ".join("any" if n is None else str(n) for n in shape)
        raise ValueError(
            f"`{name}` must be a float tensor of shape ({expected}). "
            f"Received: {tensor.dtype} of shape {tuple(tensor.shape)}"
        )


def check_projections(keys: Any, values: Any, positions: TensorLike) -> None:
    """Raises ValueError unless these are the parts of a full cache."""
    checks.tensor("positions", positions, "an integer tensor (B, L)")
    checks.rank("positions", positions, 2)
    checks.integers("positions", positions)
    for name, parts in (("keys", keys), ("values", values)):
        checks.instance(name, parts, (list, tuple), "a list, one per layer")
        if not parts or len(parts) != len(keys):
            raise ValueError(
                "`keys` and `values` must have one tensor per layer. "
                f"Received: {len(keys)} and {len(values)}"
            )
        for part in parts:
            check_features(name, part, (*positions.shape, None, None))
