"""Checks of captions."""

import pytest

from keras_attn.datasets import SceneObject, check_caption, make_scenes

pytestmark = pytest.mark.one_backend

SQUARE = SceneObject("square", "red", 8.0, 20.0, 4.0)
RING = SceneObject("ring", "blue", 30.0, 12.0, 4.0)
CROSS = SceneObject("cross", "white", 12.0, 38.0, 4.0)


@pytest.mark.parametrize("split", ["train", "test"])
def test_captions_are_true(split):
    _, captions, objects = make_scenes(60, seed=5, split=split)
    for scene, caption in zip(objects, captions, strict=True):
        first, second = scene
        assert caption.startswith(f"a {first.color} {first.shape} ")
        assert caption.endswith(f" a {second.color} {second.shape}")
        for order in (scene, scene[::-1]):
            assert check_caption(order, caption) == (True, True, True)
        # Of the four relations, one is true.
        start = f"a {first.color} {first.shape}"
        end = f"a {second.color} {second.shape}"
        checks = [
            check_caption(scene, f"{start} {relation} {end}").relation
            for relation in ("left of", "right of", "above", "below")
        ]
        assert sum(checks) == 1


@pytest.mark.parametrize(
    "scene, caption, expected",
    [
        ((SQUARE, RING), "a red square left of a blue ring", (1, 1, 1)),
        ((SQUARE, RING), "a blue ring right of a red square", (1, 1, 1)),
        ((SQUARE, CROSS), "a red square above a white cross", (1, 1, 1)),
        ((CROSS, SQUARE), "a white cross below a red square", (1, 1, 1)),
        ((SQUARE, RING), "a red square above a blue ring", (1, 1, 0)),
        ((SQUARE, RING), "a blue ring left of a red square", (1, 1, 0)),
        ((SQUARE, RING), "a red ring left of a blue square", (1, 0, 0)),
        ((SQUARE, RING), "a red square left of a red square", (1, 0, 0)),
        ((SQUARE, RING), "a red square a blue ring", (0, 0, 0)),
        ((SQUARE, RING), "a red square left a blue ring", (0, 0, 0)),
        ((SQUARE, RING), "a square red left of a blue ring", (0, 0, 0)),
        ((SQUARE, RING), "a red square left of the blue ring", (0, 0, 0)),
        ((SQUARE, RING), "a red square left of a blue ring a", (0, 0, 0)),
        ((SQUARE, RING), "", (0, 0, 0)),
    ],
)
def test_checks(scene, caption, expected):
    assert check_caption(scene, caption) == expected


def test_invalid_arguments_raise():
    for scene in ((SQUARE,), [SQUARE, "ring"], None):
        with pytest.raises(ValueError, match=r"`scene` must be .* scene="):
            check_caption(scene, "")
    with pytest.raises(ValueError, match="`caption` must be a str"):
        check_caption((SQUARE, RING), b"a")
