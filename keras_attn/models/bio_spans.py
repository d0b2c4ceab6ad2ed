"""Entity spans from BIO tags."""

from collections.abc import Iterable, Mapping, Sequence, Set
from typing import NamedTuple

import keras

from keras_attn import checks


class Entity(NamedTuple):
    """A labeled span of words.

    Args:
        label: str. The label after `B-` or `I-`.
        start: int. Index of the first word.
        end: int. Index of the last word.

    Examples:
        >>> keras_attn.models.Entity("person", 1, 2).end
        2
    """

    label: str
    start: int
    end: int


def bio_spans(tags: Sequence[str]) -> list[Entity]:
    """Returns the entities of a BIO tag sequence, well-formed or not.

    `B-x` begins an entity x, `I-x` continues it, `O` is outside of entities. An
    `I-x` that does not follow a tag of the same label also begins an entity, as
    in the evaluation script of CoNLL-2000 (Tjong Kim Sang and Buchholz 2000,
    https://aclanthology.org/W00-0726), so that malformed predictions count
    as errors instead of being dropped.

    Args:
        tags: list of str, one per word.

    Returns:
        List of `Entity`, in order of position.

    Raises:
        ValueError: `tags` is one str or no list, or a tag has another form.

    Examples:
        >>> keras_attn.models.bio_spans(["O", "B-city", "I-city"])
        [Entity(label='city', start=1, end=2)]
    """
    is_list = isinstance(tags, Iterable) and not isinstance(
        tags, (str, bytes, Mapping, Set, keras.KerasTensor)
    )
    if not is_list or getattr(tags, "shape", (1,)) == ():
        raise ValueError(
            "`tags` must be a list of str, one per word. "
            f"Received: tags of type {type(tags).__name__}"
        )
    entities = []
    for index, tag in enumerate(tags):
        # Not a str: the prefix of no tag.
        prefix, _, label = (
            tag.partition("-") if isinstance(tag, str) else ("", "", "")
        )
        if prefix not in ("B", "I", "O") or bool(label) == (prefix == "O"):
            raise ValueError(
                "`tags` must be O, or B- or I- followed by a label. "
                f"Received: {checks.shown(tag)}"
            )
        if tag == "O":
            continue
        previous = entities[-1] if entities else None
        continues = (
            previous and previous.end == index - 1 and previous.label == label
        )
        if prefix == "I" and continues:
            entities[-1] = previous._replace(end=index)
        else:
            entities.append(Entity(label, index, index))
    return entities
