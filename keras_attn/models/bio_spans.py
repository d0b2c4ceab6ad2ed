"""The entities that a row of BIO tags stands for."""

from typing import NamedTuple


class Entity(NamedTuple):
    """Holds a stretch of words, and what it is.

    Args:
        label: str. What stands behind `B-` or `I-`.
        start: int. The first word.
        end: int. The last word.

    Examples:
        >>> keras_attn.models.Entity("person", 1, 2).end
        2
    """

    label: str
    start: int
    end: int


def bio_spans(tags):
    """Reads the entities out of tags, legal or not.

    `B-x` begins an entity x, `I-x` goes on with it, `O` is none. An `I-x` with
    nothing of its kind in front begins one all the same, as in the program by
    which CoNLL-2000 was judged (Tjong Kim Sang and Buchholz 2000,
    https://aclanthology.org/W00-0726): what a model says wrong is counted, not
    thrown away.

    Args:
        tags: list of str, one a word.

    Returns:
        List of `Entity`, in order.

    Raises:
        ValueError: something that is no such tag.

    Examples:
        >>> keras_attn.models.bio_spans(["O", "B-city", "I-city"])
        [Entity(label='city', start=1, end=2)]
    """
    found = []
    for place, tag in enumerate(tags):
        mark, _, label = tag.partition("-")
        if tag != "O" and (mark not in ("B", "I") or not label):
            raise ValueError(
                "`tags` must be O, or B- or I- with a kind behind it. "
                f"Received: {tag!r}"
            )
        if tag == "O":
            continue
        before = found[-1] if found else None
        goes_on = before and before.end == place - 1 and before.label == label
        if mark == "I" and goes_on:
            found[-1] = before._replace(end=place)
        else:
            found.append(Entity(label, place, place))
    return found
