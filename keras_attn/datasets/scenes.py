"""make_scenes: images of two objects, with captions."""

import itertools
from typing import Any, NamedTuple

import numpy as np

from keras_attn import checks
from keras_attn.datasets.content_split import split_of
from keras_attn.datasets.sampling import check_arguments
from keras_attn.datasets.scene_captions import caption_of
from keras_attn.datasets.scene_images import COLORS, SHAPES, draw_scene
from keras_attn.datasets.stable_random import StableRandom

# Each color and each shape is once in them.
_HELD_OUT = list(zip(COLORS, SHAPES, strict=True))
_COMMON = [
    pair for pair in itertools.product(COLORS, SHAPES) if pair not in _HELD_OUT
]
# By how much the distance along one axis exceeds that along the other, so that
# one relation is true and no other.
_DISTANCE_RATIO = 1.25
_MOST_PIXELS = 2**30


class SceneObject(NamedTuple):
    """An object in a scene.

    Args:
        shape: str. "circle", "square", "triangle", "cross", "ring" or
            "diamond".
        color: str. "red", "green", "blue", "yellow", "purple" or "white".
        x: float. Its center, in pixels from the left edge of the image.
        y: float. Its center, in pixels from the upper edge.
        radius: float. Half its width, in pixels.

    Examples:
        >>> ring = keras_attn.datasets.SceneObject("ring", "blue", 30., 12., 4.)
        >>> ring.color
        'blue'
    """

    shape: str
    color: str
    x: float
    y: float
    radius: float


class Scenes(NamedTuple):
    """Images of scenes, with captions.

    Args:
        images: uint8 (n, H, W, 3). RGB.
        captions: list of n str.
        objects: list of n tuples of two `SceneObject`. The caption names the
            first one first.

    Examples:
        >>> scenes = keras_attn.datasets.make_scenes(3)
        >>> images, captions, objects = scenes
        >>> images.shape, len(captions), len(objects)
        ((3, 40, 40, 3), 3, 3)
    """

    images: Any
    captions: list[str]
    objects: "list[tuple[SceneObject, SceneObject]]"


def make_scenes(
    n: int, *, seed: int = 0, split: str = "train", size: int = 40
) -> Scenes:
    """Makes images of two colored shapes, with captions.

    For image captioning: a caption such as "a red square left of a blue ring"
    is true or false, see `check_caption`. There are six shapes, six colors and
    four relations ("left of", "right of", "above", "below"); captions have 7 or
    8 words, of a vocabulary of 18. The two objects differ in shape or color, do
    not overlap, and are further apart along one axis than along the other. A
    second true caption names the other object first. Background, brightness and
    pixel noise are random.

    The test split tests generalization to new combinations. One or both objects
    of its scenes (with probability 0.5 each) are a red circle, a green square,
    a blue triangle, a yellow cross, a purple ring or a white diamond. These six
    of the 36 combinations of color and shape are in no other split. The
    validation split has combinations as in training, but other captions: one in
    ten of the 3,480 captions, together with its converse, is held out for it.

    Args:
        n: int >= 0. Number of scenes.
        seed: int >= 0. Default 0.
        split: "train", "validation" or "test". Default "train".
        size: int in [16, 1024]. Height and width of the images, in pixels.
            Default 40.

    Returns:
        `Scenes`.

    Raises:
        ValueError: an argument is invalid.

    Examples:
        >>> scenes = keras_attn.datasets.make_scenes(2)
        >>> scenes.captions[1]
        'a red cross left of a red ring'
        >>> first, second = scenes.objects[0]
        >>> first.shape, first.color, round(first.x, 2), round(second.x, 2)
        ('triangle', 'green', 30.26, 14.65)
    """
    check_arguments(n, seed, split)
    checks.integer("size", size, 16, 1024)
    checks.integer("n", n, 0, _MOST_PIXELS // size**2)
    random = StableRandom(seed)
    images = np.empty((n, size, size, 3), "uint8")
    objects = []
    for image in images:
        scene = _scene(random, size, split)
        while scene is None:
            scene = _scene(random, size, split)
        objects.append(scene)
        image[:] = draw_scene(scene, size, random)
    return Scenes(images, [caption_of(scene) for scene in objects], objects)


def _scene(random, size, split):
    """Returns a random scene of a split, or None if the draw is rejected."""
    kinds = [random.choice(_COMMON), random.choice(_COMMON)]
    if split == "test":
        kinds[0] = random.choice(_HELD_OUT)
        if random.happens(0.5):
            kinds[1] = random.choice(_HELD_OUT)
    if kinds[0] == kinds[1]:
        return None
    scene = []
    for color, shape in kinds:
        radius = random.between(size / 9, size / 6)
        x, y = (random.between(radius, size - radius) for _ in range(2))
        scene.append(SceneObject(shape, color, x, y, radius))
    first, second = scene
    near, far = sorted((abs(first.x - second.x), abs(first.y - second.y)))
    if far < first.radius + second.radius + 1 or far < _DISTANCE_RATIO * near:
        return None
    if split != "test" and _is_held_out(scene) != (split == "validation"):
        return None
    random.shuffle(scene)
    return tuple(scene)


def _is_held_out(scene):
    """Returns whether the validation split has the captions of a scene."""
    captions = caption_of(scene), caption_of(scene[::-1])
    return split_of(min(captions)) != "train"
