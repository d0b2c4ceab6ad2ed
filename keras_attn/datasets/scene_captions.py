"""Captions of scenes of two objects."""

from typing import TYPE_CHECKING, Any

from keras_attn.datasets.scene_images import COLORS, SHAPES

if TYPE_CHECKING:
    from keras_attn.datasets.scenes import SceneObject


RELATIONS = ("left of", "right of", "above", "below")


def relation_between(first: "SceneObject", second: "SceneObject") -> Any:
    """Returns one of `RELATIONS`, along the axis of the larger distance.

    Args:
        first: `SceneObject`.
        second: `SceneObject`.
    """
    right, down = first.x - second.x, first.y - second.y
    if abs(right) > abs(down):
        return "right of" if right > 0 else "left of"
    return "below" if down > 0 else "above"


def caption_of(scene: tuple[Any, ...]) -> str:
    """Returns a caption that names the first object first.

    Args:
        scene: tuple of two `SceneObject`.
    """
    first, second = scene
    return (
        f"a {first.color} {first.shape} {relation_between(first, second)} "
        f"a {second.color} {second.shape}"
    )


def parse_caption(caption: str) -> tuple[Any, ...] | None:
    """Parses a caption.

    Args:
        caption: str.

    Returns:
        Tuple: (color, shape), relation, (color, shape); None if the caption is
        malformed.
    """
    words = caption.split()
    if len(words) < 7 or words[0] != "a" or words[-3] != "a":
        return None
    first, second = tuple(words[1:3]), tuple(words[-2:])
    relation = " ".join(words[3:-3])
    for color, shape in (first, second):
        if color not in COLORS or shape not in SHAPES:
            return None
    return (first, relation, second) if relation in RELATIONS else None
