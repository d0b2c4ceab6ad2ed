"""Lists of things in English and Spanish, and which word translates which.

    my red car and two old trees -> mi coche rojo y dos árboles viejos

English puts the adjective before the noun, Spanish after it; and a Spanish
article and adjective have the gender of the noun. A list may have any number
of things, so the sentences can be of any length.
"""

import hashlib
import random
from typing import NamedTuple

from phrase_nouns import ADJECTIVES, NOUNS, Phrase, connect, noun_phrase

NOUN_NAMES = (
    *("cat", "dog", "horse", "bird", "turtle", "snake", "book", "letter"),
    *("key", "lamp", "bottle", "box", "shirt", "shoe", "hat", "table"),
    *("chair", "bed", "house", "church", "tree", "bridge", "car", "boat"),
)
ADJECTIVE_NAMES = (
    *("big", "small", "old", "beautiful", "expensive", "heavy", "strange"),
    *("red", "white", "black", "green", "broken", "dirty", "new"),
)
# One word in each language, that in front of one thing and of several.
SINGULAR = ("the", "this", "that", "my", "our")
PLURAL = ("the", "these", "my", "two", "three", "many")

# So many draws without a new list: there are no more.
_ENOUGH = 2000


class NounList(NamedTuple):
    """A list of things, in both languages.

    Args:
        english: str.
        spanish: str.
        links: tuple of int. For each Spanish word the place of the English
            word that it translates.
    """

    english: str
    spanish: str
    links: tuple

    @property
    def pair(self):
        """Tuple (English, Spanish) of str."""
        return self.english, self.spanish


def thing(determiner, noun, adjective=None, plural=False):
    """Makes a list of one thing.

    Args:
        determiner: str, one word of `phrase_lexicon.DETERMINERS`.
        noun: str, an English noun in the singular.
        adjective: str, an English adjective. Default None.
        plural: bool. Default False.

    Returns:
        `NounList`.

    Raises:
        ValueError: the determiner does not go with that number.

    Examples:
    >>> thing("two", "tree", "old", plural=True)
    NounList(english='two old trees', spanish='dos árboles viejos', \
links=(0, 2, 1))
    """
    phrase = noun_phrase(determiner, noun, adjective, plural)
    links = (0, 1) if adjective is None else (0, 2, 1)
    return NounList(phrase.english, phrase.spanish, links)


def listed(things):
    """Joins lists by *and*.

    Args:
        things: iterable of `NounList`, at least one.

    Returns:
        `NounList`.

    Raises:
        ValueError: there is nothing to join.

    Examples:
    >>> listed([thing("the", "cat"), thing("my", "car", "red")])[:2]
    ('the cat and my red car', 'el gato y mi coche rojo')
    """
    things = list(things)
    if not things:
        raise ValueError("`things` must hold at least one. Received: things=[]")
    found = things[0]
    for other in things[1:]:
        both = connect(Phrase(*found.pair), "and", Phrase(*other.pair))
        joint = len(found.english.split())
        links = (*found.links, joint, *(joint + 1 + i for i in other.links))
        found = NounList(both.english, both.spanish, links)
    return found


def draw_lists(count, least, most, held_out=False, seed=0):
    """Draws different lists.

    Which side a list falls on depends on its words alone: no list that is
    drawn with `held_out` is ever drawn without.

    Args:
        count: int >= 0. How many.
        least: int >= 1. The fewest things in a list.
        most: int. The most things; each number is equally likely.
        held_out: bool. Whether to draw those that are kept for tests, one in
            ten. Default False.
        seed: int. The same seed draws the same. Default 0.

    Returns:
        List of `count` `NounList`.

    Raises:
        ValueError: `count` is negative or more than there seem to be, or
            there is no number of things from `least` to `most`.
    """
    if count < 0:
        raise ValueError(
            f"`count` must not be negative. Received: count={count}"
        )
    if not 1 <= least <= most:
        raise ValueError(
            "`least` must be at least 1 and at most `most`. "
            f"Received: least={least}, most={most}"
        )
    draw = random.Random(f"{seed} {held_out}")
    found, in_vain = {}, 0
    while len(found) < count:
        size = draw.randint(least, most)
        one = listed(_draw_thing(draw) for _ in range(size))
        new = is_held_out(one.english) == held_out and one.english not in found
        in_vain = 0 if new else in_vain + 1
        if new:
            found[one.english] = one
        elif in_vain == _ENOUGH:
            raise ValueError(
                "`count` must not exceed the lists that there are. "
                f"Received: count={count}; {len(found)} were found"
            )
    return list(found.values())


def is_held_out(english):
    """Returns whether a list is kept for tests.

    Args:
        english: str.

    Returns:
        Bool, True for one in ten.
    """
    digest = hashlib.sha256(english.encode()).hexdigest()
    return int(digest, 16) % 10 == 0


def _draw_thing(draw):
    noun = draw.choice(NOUN_NAMES)
    plural = draw.random() < 0.5
    determiner = draw.choice(PLURAL if plural else SINGULAR)
    adjective = None
    if draw.random() < 0.75:
        adjective = draw.choice(_SUITABLE[noun])
    return thing(determiner, noun, adjective, plural)


_SUITABLE = {
    noun: tuple(
        adjective
        for adjective in ADJECTIVE_NAMES
        if NOUNS[noun].kind in ADJECTIVES[adjective].kinds
    )
    for noun in NOUN_NAMES
}
