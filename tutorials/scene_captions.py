"""What can be said of a scene, and whether it is true."""

from typing import NamedTuple

from scenes import COLOURS, SHAPES

RELATIONS = ("left of", "right of", "above", "below")


class Verdict(NamedTuple):
    """Says what is right in a caption.

    Args:
        sentence: bool. It is one: a thing, a relation, a thing.
        things: bool. It names the two things that are there.
        relation: bool. It names them, and the relation is true.
    """

    sentence: bool
    things: bool
    relation: bool


def relation_of(first, second):
    """Returns how a thing stands to another, one of `RELATIONS`.

    Args:
        first: `Thing`.
        second: `Thing`.
    """
    right, down = first.x - second.x, first.y - second.y
    if abs(right) > abs(down):
        return "right of" if right > 0 else "left of"
    return "below" if down > 0 else "above"


def caption_of(scene):
    """Says what is there, the first thing first.

    Args:
        scene: tuple of two `Thing`.

    Returns:
        Str, such as "a red ring left of a blue circle".
    """
    first, second = scene
    relation = relation_of(first, second)
    return (
        f"a {first.colour} {first.shape} {relation} "
        f"a {second.colour} {second.shape}"
    )


def judge(scene, caption):
    """Says what is right in a caption, whichever thing it names first.

    Args:
        scene: tuple of two `Thing`.
        caption: str.

    Returns:
        `Verdict`.
    """
    said = _parse(caption)
    if said is None:
        return Verdict(False, False, False)
    first, relation, second = said
    for one, other in (scene, scene[::-1]):
        if (one.kind, other.kind) == (first, second):
            return Verdict(True, True, relation == relation_of(one, other))
    return Verdict(True, False, False)


def _parse(caption):
    words = caption.split()
    if len(words) < 7 or words[0] != "a" or words[-3] != "a":
        return None
    first, second = tuple(words[1:3]), tuple(words[-2:])
    relation = " ".join(words[3:-3])
    kinds = [
        kind[0] in COLOURS and kind[1] in SHAPES for kind in (first, second)
    ]
    if relation not in RELATIONS or not all(kinds):
        return None
    return first, relation, second
