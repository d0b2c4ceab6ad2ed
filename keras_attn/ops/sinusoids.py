"""Sines and cosines for position encodings, exact at large positions."""

import functools
import math

import numpy as np
from keras import ops

from keras_attn import checks
from keras_attn.backend import concrete, is_torch_program, nan_where
from keras_attn.typing import Tensor, TensorLike

_LOW = 256  # a position is _LOW * high + low
_HIGH = 512
_LAST = _LOW * _HIGH - 1
# The tables have 768 rows of float64.
_WIDEST = 2**16


def sine_and_cosine(
    positions: TensorLike, width: int, max_wavelength: float = 10000.0
) -> tuple[Tensor, Tensor]:
    """Computes sine and cosine of p / max_wavelength^(2i / D), for i < D / 2.

    A position is split into p = 256 h + l, and the two angles are combined by
    the addition theorems, from tables computed in float64: sin(p w) computed in
    float32 has an error of 5e-4 at p = 8,192.

    Args:
        positions: int32 (B, T), at most 131,071. -1 (padding) counts as 0. In
            compiled code, larger positions return NaN.
        width: int, even, at most 65,536. D, two per angle.
        max_wavelength: float > 0. Wavelengths range from 2 pi to 2 pi
            `max_wavelength` tokens.

    Returns:
        Two float32 (B, T, D / 2).

    Raises:
        ValueError: if `width` is odd or too large, or `positions` are not
            integers (B, T) or too large.

    Examples:
        >>> sine, cosine = keras_attn.ops.sinusoids.sine_and_cosine(
        ...     keras.ops.convert_to_tensor([[0, 1]]), 2)
        >>> keras.ops.convert_to_numpy(sine)[0, :, 0].round(4).tolist()
        [0.0, 0.8414999842643738]
    """
    _check_positions(positions)
    if checks.integer("width", width, 2, _WIDEST) % 2:
        raise ValueError(f"`width` must be even. Received: width={width}")
    positions, known = _known(positions)
    if is_torch_program():
        exponent = ops.arange(0, width, 2, dtype="float64") / width
        frequency = ops.exp(-math.log(max_wavelength) * exponent)
        return _in_float64(positions, frequency)
    return _look_up(_tables(width, float(max_wavelength)), positions, known)


def sine_and_cosine_of(
    positions: TensorLike,
    frequencies: tuple[tuple[float, ...], ...],
    choice: TensorLike | None = None,
) -> tuple[Tensor, Tensor]:
    """Computes sine and cosine of the angles p w_i, exactly.

    Args:
        positions: int32 (B, T), as in `sine_and_cosine`.
        frequencies: tuple of tuples of D / 2 floats. Each is a choice of the
            w_i, radians per token.
        choice: int32 (B, T), size-1 axes allowed. The index of the choice for
            each token. Default: 0.

    Returns:
        Two float32 (B, T, D / 2).

    Raises:
        ValueError: if `positions` are not integers (B, T) or too large.

    Examples:
        >>> sine, cosine = keras_attn.ops.sinusoids.sine_and_cosine_of(
        ...     keras.ops.convert_to_tensor([[0, 1]]), ((1.0,),))
        >>> keras.ops.convert_to_numpy(sine)[0, :, 0].round(4).tolist()
        [0.0, 0.8414999842643738]
    """
    _check_positions(positions)
    positions, known = _known(positions)
    if is_torch_program():
        rows = ops.convert_to_tensor(frequencies, dtype="float64")
        frequency = rows[0]
        if choice is not None:
            frequency = ops.take(rows, choice, axis=0)
        return _in_float64(positions, frequency)
    return _look_up(_scaled_tables(frequencies), positions, known, choice)


def sine_and_cosine_of_growing(
    positions: TensorLike, frequencies: tuple[float, ...], growth: TensorLike
) -> tuple[Tensor, Tensor]:
    """Computes sine and cosine of p w_i g^(-2i / (D - 2)).

    The angles are products in float32, so their error grows with the position:
    2^-24 of the angle.

    Args:
        positions: int32 (B, T), as in `sine_and_cosine`.
        frequencies: tuple of D / 2 floats, the w_i; D >= 4.
        growth: float32 (B, T), size-1 axes allowed. g; where it is 1, the
            result is that of `sine_and_cosine_of`.

    Returns:
        Two float32 (B, T, D / 2).

    Raises:
        ValueError: if `positions` are not integers (B, T) or too large.

    Examples:
        >>> sine, cosine = keras_attn.ops.sinusoids.sine_and_cosine_of_growing(
        ...     keras.ops.convert_to_tensor([[0, 1]]), (1.0, 0.5),
        ...     keras.ops.convert_to_tensor([[2.0]]))
        >>> keras.ops.convert_to_numpy(sine)[0, 1].round(4).tolist()
        [0.8414999842643738, 0.24740000069141388]
    """
    sine, cosine = sine_and_cosine_of(positions, (frequencies,))
    positions = ops.maximum(ops.cast(positions, "int32"), 0)
    count = len(frequencies)
    logs = [math.log(w) for w in frequencies]
    exponents = [i / (count - 1) for i in range(count)]
    log_growth = ops.log(growth)[..., None]
    frequency = ops.exp(
        ops.convert_to_tensor(logs, dtype="float32")
        - log_growth * ops.convert_to_tensor(exponents, dtype="float32")
    )
    angle = ops.cast(positions, "float32")[..., None] * frequency
    angle = nan_where(ops.expand_dims(positions > _LAST, -1), angle)
    grown = growth[..., None] > 1
    return (
        ops.where(grown, ops.sin(angle), sine),
        ops.where(grown, ops.cos(angle), cosine),
    )


def _check_positions(positions):
    checks.integers("positions", checks.tensor("positions", positions))
    checks.rank("positions", positions, 2)


def _known(positions):
    """Returns positions from 0, and their values if they can be read."""
    positions = ops.maximum(ops.cast(positions, "int32"), 0)
    known = concrete(positions)
    if known is not None and known.max(initial=0) > _LAST:
        raise ValueError(
            f"`positions` must be at most {_LAST:,}. Received: positions up to "
            f"{known.max():,}"
        )
    return positions, known


def _look_up(tables, positions, known, choice=None):
    """Combines the angles of the two parts of a position."""
    low_sin, low_cos, high_sin, high_cos = tables
    low = ops.mod(positions, _LOW)
    # Backends disagree on out-of-range indices (as of Keras 3.15.1).
    high = ops.minimum(ops.floor_divide(positions, _LOW), _HIGH - 1)
    if choice is not None:
        low, high = low + _LOW * choice, high + _HIGH * choice
    low_sin, low_cos = ops.take(low_sin, low, 0), ops.take(low_cos, low, 0)
    high_sin, high_cos = (
        ops.take(high_sin, high, 0),
        ops.take(high_cos, high, 0),
    )
    if known is None:
        too_large = ops.expand_dims(positions > _LAST, -1)
        high_sin = nan_where(too_large, high_sin)
    sine = high_sin * low_cos + high_cos * low_sin
    cosine = high_cos * low_cos - high_sin * low_sin
    return sine, cosine


def sinusoid(
    positions: TensorLike, width: int, layout: str = "interleaved"
) -> Tensor:
    """Computes the sinusoidal position encoding.

        PE[p, 2i] = sin(p / 10000^(2i / D))
        PE[p, 2i + 1] = cos(p / 10000^(2i / D))

    (Vaswani et al. 2017, sec. 3.5, https://arxiv.org/abs/1706.03762). The
    layout `"halves"` has the same columns in another order: all sines, then
    all cosines.

    Args:
        positions: int32 (B, T), at most 131,071. -1 (padding) gives zeros.
        width: int, even, at most 65,536. D.
        layout: `"interleaved"` or `"halves"`.

    Returns:
        Float32 (B, T, D).

    Raises:
        ValueError: if `width` is odd or too large, `layout` is unknown, or
            `positions` are not integers (B, T) or too large.

    Examples:
        >>> table = keras_attn.ops.sinusoid(
        ...     keras.ops.convert_to_tensor([[0, 1]]), 4)
        >>> keras.ops.convert_to_numpy(table).round(4).tolist()[0][1]
        [0.8414999842643738, 0.5403000116348267, 0.009999999776482582, 1.0]
    """
    checks.choice("layout", layout, ("interleaved", "halves"))
    sine, cosine = sine_and_cosine(positions, width)
    token_mask = ops.expand_dims(positions >= 0, -1)
    if layout == "halves":
        table = ops.concatenate([sine, cosine], axis=-1)
    else:
        pairs = ops.stack([sine, cosine], axis=-1)
        table = ops.reshape(pairs, (*ops.shape(pairs)[:2], width))
    return ops.where(token_mask, table, 0.0)


def _in_float64(positions, frequency):
    """Computes sine and cosine without the tables of NumPy.

    NumPy arrays split a program of `torch.compile` (as of PyTorch 2.13.0).
    """
    angle = ops.cast(positions, "float64")[..., None] * frequency
    too_large = ops.expand_dims(positions > _LAST, -1)
    angle = nan_where(too_large, angle)
    return ops.cast(ops.sin(angle), "float32"), ops.cast(
        ops.cos(angle), "float32"
    )


@functools.cache
def _tables(width, max_wavelength):
    return _tables_of(
        max_wavelength ** (-np.arange(0, width, 2, dtype="float64") / width)
    )


@functools.lru_cache(maxsize=64)
def _scaled_tables(frequencies):
    """Returns the tables of all choices, one after the other."""
    tables = [_tables_of(np.array(row, "float64")) for row in frequencies]
    return tuple(np.concatenate(parts) for parts in zip(*tables, strict=True))


def _tables_of(frequency):
    low = np.arange(_LOW, dtype="float64")[:, None] * frequency
    high = np.arange(_HIGH, dtype="float64")[:, None] * _LOW * frequency
    tables = np.sin(low), np.cos(low), np.sin(high), np.cos(high)
    return tuple(table.astype("float32") for table in tables)
