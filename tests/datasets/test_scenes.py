"""Scenes of two objects, with captions, and checks of captions."""

import collections

import numpy as np
import pytest

from keras_attn.datasets import SceneObject, check_caption, make_scenes
from keras_attn.datasets.scene_images import COLORS, draw_scene, is_inside
from keras_attn.datasets.stable_random import StableRandom

HELD_OUT = "red circle,green square,blue triangle,yellow cross,purple ring"
HELD_OUT = {*HELD_OUT.split(","), "white diamond"}
RELATIONS = "left of", "right of", "above", "below"


def kind(item):
    return f"{item.color} {item.shape}"


@pytest.mark.parametrize("split", ["train", "validation", "test"])
def test_scenes(split):
    images, captions, objects = make_scenes(60, seed=3, split=split, size=48)
    assert images.shape == (60, 48, 48, 3) and images.dtype == "uint8"
    assert len({word for text in captions for word in text.split()}) == 18
    held_out = collections.Counter()
    for image, caption, scene in zip(images, captions, objects, strict=True):
        first, second = scene
        assert kind(first) != kind(second)
        near, far = sorted((abs(first.x - second.x), abs(first.y - second.y)))
        assert far > first.radius + second.radius and far >= 1.25 * near
        for item in scene:
            assert 48 / 9 <= item.radius <= 48 / 6
            for center in (item.x, item.y):
                assert item.radius <= center <= 48 - item.radius
            check_color(image, item)
        held_out[kind(first) in HELD_OUT, kind(second) in HELD_OUT] += 1
        assert caption.startswith(f"a {kind(first)} ")
        assert caption.endswith(f" a {kind(second)}")
        for order in (scene, scene[::-1]):
            assert check_caption(order, caption) == (True, True, True)
        # Of the four relations, one is true.
        others = (f"a {kind(first)} {r} a {kind(second)}" for r in RELATIONS)
        assert sum(check_caption(scene, text).relation for text in others) == 1
    if split == "test":
        assert min(held_out[True, False], held_out[False, True]) > 8
        assert 20 < held_out[True, True] < 40 and not held_out[False, False]
    else:
        assert held_out == {(False, False): 60}


def check_color(image, item):
    # Inside every shape but the ring, which is left of the hole.
    x = item.x - (0.8 * item.radius if item.shape == "ring" else 0)
    pixel = image[int(item.y), int(x)].astype(float)
    distances = {
        color: np.abs(0.9 * np.array(rgb) - pixel).sum()
        for color, rgb in COLORS.items()
    }
    assert min(distances, key=distances.get) == item.color


SQUARE = SceneObject("square", "red", 8.0, 20.0, 5.0)
RING = SceneObject("ring", "blue", 28.5, 12.5, 6.0)
CROSS = SceneObject("cross", "white", 12.0, 38.0, 4.0)


@pytest.mark.parametrize(
    "other, caption, expected",
    [
        (RING, "a red square left of a blue ring", (1, 1, 1)),
        (RING, "a blue ring right of a red square", (1, 1, 1)),
        (CROSS, "a red square above a white cross", (1, 1, 1)),
        (CROSS, "a white cross below a red square", (1, 1, 1)),
        (RING, "a red square above a blue ring", (1, 1, 0)),
        (RING, "a blue ring left of a red square", (1, 1, 0)),
        (RING, "a red ring left of a blue square", (1, 0, 0)),
        (RING, "a red square left of a red square", (1, 0, 0)),
        (RING, "a red square a blue ring", (0, 0, 0)),
        (RING, "a square red left of a blue ring", (0, 0, 0)),
        (RING, "a red square left of the blue ring", (0, 0, 0)),
        (RING, "a red square left of a blue ring a", (0, 0, 0)),
        (RING, "", (0, 0, 0)),
    ],
)
def test_checks_of_captions(other, caption, expected):
    assert check_caption((SQUARE, other), caption) == expected
    assert check_caption((other, SQUARE), caption) == expected


def test_areas_of_shapes():
    positions = (np.arange(1200) + 0.5) / 600 - 1
    for shape, exact in {
        "circle": np.pi,
        "ring": np.pi * (1 - 0.55**2),
        "square": 1.7**2,
        "diamond": 2.0,
        # From -1 to 0.8 in height, and equally wide at the bottom.
        "triangle": 1.8 * 1.8 * 0.55,
        "cross": 2 * 2 * 0.6 - 0.6**2,
    }.items():
        found = is_inside(shape, positions[None], positions[:, None])
        assert 4 * found.mean() == pytest.approx(exact, rel=0.01), shape


def test_images_show_objects_at_their_positions():
    image = draw_scene((SQUARE, RING), 40, StableRandom(1)).astype(int)
    red, _, blue = image.transpose(2, 0, 1)
    reddish, bluish = red - blue > 60, blue - red > 60
    for mask, item in ((reddish, SQUARE), (bluish, RING)):
        rows, columns = np.nonzero(mask)
        assert (rows + 0.5).mean() == pytest.approx(item.y, abs=0.4)
        assert (columns + 0.5).mean() == pytest.approx(item.x, abs=0.4)
        assert abs(columns + 0.5 - item.x).max() <= item.radius
    # A ring is hollow, and the background is gray.
    assert not bluish[12, 28]
    assert np.ptp(image[:4], axis=-1).mean() < 20
