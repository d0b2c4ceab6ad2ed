"""Scenes: a few things in a picture, each a shape in a colour, at a place."""

import itertools
from typing import NamedTuple

import numpy as np

COLOURS = {
    "red": (220, 50, 47),
    "green": (60, 175, 75),
    "blue": (60, 110, 230),
    "yellow": (240, 215, 50),
    "purple": (165, 70, 200),
    "white": (240, 240, 240),
}
SHAPES = ("circle", "square", "triangle", "cross", "ring", "diamond")
# One of each colour and of each shape: what is red is seen, what is a circle is
# seen, a red circle is not.
UNSEEN = frozenset(zip(COLOURS, SHAPES, strict=True))
KINDS = tuple(itertools.product(COLOURS, SHAPES))
# Things of a scene stand further apart along one axis than along the other, by
# this factor at least: so there is one relation that is true.
_CLEARLY = 1.25


class Thing(NamedTuple):
    """Holds a thing of a scene.

    Args:
        colour: str, of `COLOURS`.
        shape: str, of `SHAPES`.
        x: float. Its middle, in pixels from the left edge.
        y: float. In pixels from the upper edge.
        radius: float. Half its width, in pixels.
    """

    colour: str
    shape: str
    x: float
    y: float
    radius: float

    @property
    def kind(self):
        """Tuple (colour, shape)."""
        return self.colour, self.shape


def draw_scenes(count, size, seed, unseen=0):
    """Draws scenes of two things at random.

    Args:
        count: int. Scenes.
        size: int. Height and width of the pictures, in pixels.
        seed: int. The same seed gives the same scenes.
        unseen: int, 0, 1 or 2. How many things of each scene are of the kinds
            in `UNSEEN`; the others are of none of these.

    Returns:
        List of tuple of two `Thing`, in a random order.
    """
    generator = np.random.default_rng([seed, unseen])
    common = [kind for kind in KINDS if kind not in UNSEEN]
    rare = sorted(UNSEEN)
    scenes = []
    while len(scenes) < count:
        kinds = [
            part[generator.integers(len(part))]
            for part in [rare] * unseen + [common] * (2 - unseen)
        ]
        radii = generator.uniform(size / 9, size / 6, 2)
        places = generator.uniform(
            radii[:, None], size - radii[:, None], (2, 2)
        )
        order = generator.permutation(2)
        apart = np.abs(places[0] - places[1])
        if kinds[0] == kinds[1] or apart.max() < radii.sum() + 1:
            continue
        if apart.max() < _CLEARLY * apart.min():
            continue
        scenes.append(
            tuple(
                Thing(
                    *kinds[i], *(float(x) for x in places[i]), float(radii[i])
                )
                for i in order
            )
        )
    return scenes
