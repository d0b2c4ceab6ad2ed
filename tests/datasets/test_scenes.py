"""Scenes of two objects, with captions."""

import collections

import numpy as np
import pytest

from keras_attn.datasets import SceneObject, make_scenes
from keras_attn.datasets.scene_images import (
    COLORS,
    SHAPES,
    draw_scene,
    is_inside,
)
from keras_attn.datasets.stable_random import StableRandom
from tests.helpers.digest import digest

pytestmark = pytest.mark.one_backend

HELD_OUT = {
    ("red", "circle"),
    ("green", "square"),
    ("blue", "triangle"),
    ("yellow", "cross"),
    ("purple", "ring"),
    ("white", "diamond"),
}


def is_held_out(item):
    return (item.color, item.shape) in HELD_OUT


def converse(caption):
    """The caption that names the other object first."""
    for relation, other in (
        ("left of", "right of"),
        ("right of", "left of"),
        ("above", "below"),
        ("below", "above"),
    ):
        first, found, second = caption.partition(f" {relation} ")
        if found:
            return f"{second} {other} {first}"
    raise AssertionError(caption)


@pytest.mark.parametrize("split", ["train", "validation", "test"])
def test_objects(split):
    size = 48
    scenes = make_scenes(150, seed=3, split=split, size=size)
    assert scenes.images.shape == (150, size, size, 3)
    assert scenes.images.dtype == "uint8"
    held_out = collections.Counter()
    for first, second in scenes.objects:
        assert (first.color, first.shape) != (second.color, second.shape)
        near, far = sorted((abs(first.x - second.x), abs(first.y - second.y)))
        assert far > first.radius + second.radius and far >= 1.25 * near
        for item in (first, second):
            assert size / 9 <= item.radius <= size / 6
            for center in (item.x, item.y):
                assert item.radius <= center <= size - item.radius
        held_out[is_held_out(first), is_held_out(second)] += 1
    if split == "test":
        one = held_out[True, False], held_out[False, True]
        assert min(one) > 20 and 55 < held_out[True, True] < 95
        assert held_out[False, False] == 0
    else:
        assert held_out == {(False, False): 150}


def test_splits_and_seeds():
    captions = {split: set() for split in ("train", "validation", "test")}
    for split, found in captions.items():
        for seed in (0, 1):
            found.update(make_scenes(300, seed=seed, split=split).captions)
        found |= {converse(caption) for caption in found}
    train, validation, test = captions.values()
    assert not train & validation and not train & test and not validation & test
    words = {word for caption in train for word in caption.split()}
    assert len(words) == 18
    first, again = (make_scenes(n, seed=1) for n in (2, 4))
    assert first.objects == again.objects[:2]
    np.testing.assert_array_equal(first.images, again.images[:2])
    assert first.captions != make_scenes(2, seed=2).captions
    assert digest(make_scenes(10)) == "7f4b1ecfd8669bf0"
    assert make_scenes(0).images.shape == (0, 40, 40, 3)


@pytest.mark.parametrize("shape", SHAPES)
def test_areas_of_shapes(shape):
    exact = {
        "circle": np.pi,
        "ring": np.pi * (1 - 0.55**2),
        "square": 1.7**2,
        "diamond": 2.0,
        # From -1 to 0.8 in height, and equally wide at the bottom.
        "triangle": 1.8 * 1.8 * 0.55,
        "cross": 2 * 2 * 0.6 - 0.6**2,
    }[shape]
    positions = (np.arange(1200) + 0.5) / 600 - 1
    found = is_inside(shape, positions[None], positions[:, None]).mean() * 4
    assert found == pytest.approx(exact, rel=0.01)


def test_images_show_objects_at_their_positions():
    scene = (
        SceneObject("square", "red", 8.0, 20.0, 5.0),
        SceneObject("ring", "blue", 28.5, 12.5, 6.0),
    )
    image = draw_scene(scene, 40, StableRandom(1)).astype(int)
    red, _, blue = image.transpose(2, 0, 1)
    reddish, bluish = red - blue > 60, blue - red > 60
    for mask, item in ((reddish, scene[0]), (bluish, scene[1])):
        rows, columns = np.nonzero(mask)
        assert (rows + 0.5).mean() == pytest.approx(item.y, abs=0.4)
        assert (columns + 0.5).mean() == pytest.approx(item.x, abs=0.4)
        assert abs(columns + 0.5 - item.x).max() <= item.radius
    # A ring is hollow, and the background is gray.
    assert not bluish[12, 28]
    assert np.ptp(image[:4], axis=-1).mean() < 20


def test_images_have_the_colors_of_their_objects():
    scenes = make_scenes(60, seed=1, split="test")
    for image, objects in zip(scenes.images, scenes.objects, strict=True):
        for item in objects:
            # Inside every shape but the ring, which is left of the hole.
            x = item.x - (0.8 * item.radius if item.shape == "ring" else 0)
            pixel = image[int(item.y), int(x)].astype(float)
            distances = {
                color: np.abs(0.9 * np.array(rgb) - pixel).sum()
                for color, rgb in COLORS.items()
            }
            assert min(distances, key=distances.get) == item.color


@pytest.mark.parametrize(
    "name, value",
    [("n", -1), ("n", 10**9), ("seed", -1), ("split", 0), ("size", 15)],
)
def test_invalid_arguments_raise(name, value):
    arguments = {"n": 1, name: value}
    with pytest.raises(ValueError, match=f"`{name}` must be .*{name}="):
        make_scenes(arguments.pop("n"), **arguments)
