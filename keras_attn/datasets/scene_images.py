"""Images of scenes: shapes with smooth edges on a gray background."""

from typing import TYPE_CHECKING

import numpy as np

from keras_attn.typing import Tensor, TensorLike

if TYPE_CHECKING:
    from keras_attn.datasets.scenes import SceneObject
    from keras_attn.datasets.stable_random import StableRandom


COLORS = {
    "red": (220, 50, 47),
    "green": (60, 175, 75),
    "blue": (60, 110, 230),
    "yellow": (240, 215, 50),
    "purple": (165, 70, 200),
    "white": (240, 240, 240),
}
SHAPES = ("circle", "square", "triangle", "cross", "ring", "diamond")
_SUBPIXELS = 4  # per axis, of which a pixel is the mean


def draw_scene(
    scene: "tuple[SceneObject, ...]", size: int, random: "StableRandom"
) -> Tensor:
    """Draws a scene, with random brightness and noise.

    Args:
        scene: tuple of `SceneObject`.
        size: int. Height and width, in pixels.
        random: `StableRandom`.

    Returns:
        uint8 (size, size, 3).
    """
    image = np.full((size, size, 3), random.between(30, 80))
    for item in scene:
        rows, columns, coverage = _coverage(item, size)
        color = random.between(0.8, 1.0) * np.array(COLORS[item.color])
        part = image[rows, columns]
        part += coverage[..., None] * (color - part)
    image += 6 * random.normal(image.shape)
    return np.rint(image).clip(0, 255).astype("uint8")


def is_inside(shape: str, u: TensorLike, v: TensorLike) -> Tensor:
    """Returns which points are inside a shape.

    Args:
        shape: str, one of `SHAPES`.
        u: float array. Distance to the right of the center, in radii.
        v: float array. Distance below the center, in radii.

    Returns:
        Bool array.
    """
    # Not `hypot`, which may be rounded differently on another platform.
    square = u * u + v * v
    larger, smaller = (f(abs(u), abs(v)) for f in (np.maximum, np.minimum))
    if shape == "circle":
        return square <= 1
    if shape == "ring":
        return (square <= 1) & (square >= 0.55**2)
    if shape == "square":
        return larger <= 0.85
    if shape == "diamond":
        return larger + smaller <= 1
    if shape == "triangle":
        return (v <= 0.8) & (abs(u) <= (v + 1) * 0.55)
    return (larger <= 1) & (smaller <= 0.3)  # a cross


def _coverage(item, size):
    """Returns slices of rows and columns, and how much of each pixel is in."""
    x, y = (
        np.arange(
            max(0, int(center - item.radius) - 1),
            min(size, int(center + item.radius) + 2),
        )
        for center in (item.x, item.y)
    )
    steps = (np.arange(_SUBPIXELS) + 0.5) / _SUBPIXELS
    u, v = (
        ((pixels[:, None] + steps).ravel() - center) / item.radius
        for pixels, center in ((x, item.x), (y, item.y))
    )
    inside = is_inside(item.shape, u[None], v[:, None])
    coverage = inside.reshape(len(y), _SUBPIXELS, len(x), _SUBPIXELS)
    rows, columns = slice(y[0], y[-1] + 1), slice(x[0], x[-1] + 1)
    return rows, columns, coverage.mean((1, 3))
