"""check_caption: whether a caption is true of a scene."""

from typing import Any, NamedTuple

import numpy as np

from keras_attn import checks
from keras_attn.datasets.scene_captions import parse_caption, relation_between
from keras_attn.datasets.scenes import SceneObject


class CaptionCheck(NamedTuple):
    """What is correct in a caption.

    Args:
        well_formed: bool. Whether it has the form "a <color> <shape> <relation>
            a <color> <shape>".
        objects: bool. Whether it also names the two objects.
        relation: bool. Whether it also names their relation; then the caption
            is true.

    Examples:
        >>> check = keras_attn.datasets.CaptionCheck(True, True, False)
        >>> check.relation
        False
    """

    well_formed: bool
    objects: bool
    relation: bool


def check_caption(scene: tuple[Any, ...], caption: str) -> CaptionCheck:
    """Checks whether a caption is true of a scene.

    For scores of generated captions: either object may be named first.

    Args:
        scene: tuple of two `SceneObject`, an item of the `objects` of `Scenes`.
        caption: str.

    Returns:
        `CaptionCheck`.

    Raises:
        ValueError: `scene` is not a pair of `SceneObject` at numeric positions,
            or `caption` is not a str.

    Examples:
        >>> from keras_attn.datasets import SceneObject, check_caption
        >>> scene = (SceneObject("square", "red", 8.0, 20.0, 4.0),
        ...          SceneObject("ring", "blue", 30.0, 12.0, 4.0))
        >>> check_caption(scene, "a blue ring right of a red square").relation
        True
        >>> check_caption(scene, "a blue ring below a red square")
        CaptionCheck(well_formed=True, objects=True, relation=False)
    """
    if (
        not isinstance(scene, (list, tuple))
        or len(scene) != 2
        or not all(map(_is_object, scene))
    ):
        raise ValueError(
            "`scene` must be a pair of `SceneObject` at numeric positions. "
            f"Received: scene={checks.shown(scene)}"
        )
    parsed = parse_caption(checks.string("caption", caption))
    if parsed is None:
        return CaptionCheck(False, False, False)
    *kinds, relation = parsed[0], parsed[2], parsed[1]
    for first, second in (scene, scene[::-1]):
        if kinds == [(item.color, item.shape) for item in (first, second)]:
            is_true = relation == relation_between(first, second)
            return CaptionCheck(True, True, is_true)
    return CaptionCheck(True, False, False)


def _is_object(item):
    return isinstance(item, SceneObject) and all(
        isinstance(number, (int, float, np.integer, np.floating))
        for number in (item.x, item.y)
    )
