"""Scenes as pictures: shapes with smooth edges on a grey ground, with noise."""

import numpy as np
from scenes import COLOURS

_FINE = 4  # a pixel is the mean of so many squared


def paint(scenes, size, seed):
    """Paints scenes.

    Args:
        scenes: list of tuple of `Thing`.
        size: int. Height and width, in pixels.
        seed: int. Of the shade of the ground, of colours and of noise.

    Returns:
        Uint8 (B, size, size, 3).
    """
    generator = np.random.default_rng([seed, 77])
    pictures = np.empty((len(scenes), size, size, 3), "uint8")
    for picture, scene in zip(pictures, scenes, strict=True):
        canvas = np.full((size, size, 3), generator.uniform(30, 80))
        for thing in scene:
            rows, columns, share = _share_of_pixels(thing, size)
            shade = generator.uniform(0.8, 1.0) * np.array(
                COLOURS[thing.colour], "float64"
            )
            part = canvas[rows, columns]
            part += share[..., None] * (shade - part)
        canvas += generator.normal(0, 6, canvas.shape)
        picture[:] = canvas.round().clip(0, 255)
    return pictures


def inside(shape, u, v):
    """Says which points lie inside of a shape.

    Args:
        shape: str, of `scenes.SHAPES`.
        u: float array, to the right of the middle, in radii.
        v: float array, below the middle, in radii.

    Returns:
        Bool array.
    """
    far = np.hypot(u, v)
    wide = np.maximum(abs(u), abs(v))
    if shape == "circle":
        return far <= 1
    if shape == "ring":
        return (far <= 1) & (far >= 0.55)
    if shape == "square":
        return wide <= 0.85
    if shape == "diamond":
        return abs(u) + abs(v) <= 1
    if shape == "triangle":
        return (v <= 0.8) & (abs(u) <= (v + 1) * 0.55)
    return (wide <= 1) & (np.minimum(abs(u), abs(v)) <= 0.3)  # a cross


def _share_of_pixels(thing, size):
    """How much of each pixel around a thing it covers."""
    x, y = (
        np.arange(
            max(0, int(middle - thing.radius) - 1),
            min(size, int(middle + thing.radius) + 2),
        )
        for middle in (thing.x, thing.y)
    )
    fine = (np.arange(_FINE) + 0.5) / _FINE
    u, v = (
        ((pixels[:, None] + fine).ravel() - middle) / thing.radius
        for pixels, middle in ((x, thing.x), (y, thing.y))
    )
    covered = inside(thing.shape, u[None], v[:, None])
    share = covered.reshape(len(y), _FINE, len(x), _FINE).mean((1, 3))
    return slice(y[0], y[-1] + 1), slice(x[0], x[-1] + 1), share
