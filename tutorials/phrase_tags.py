"""The part of speech of every word of an English sentence of the grammar.

The tags are those of Universal Dependencies (UPOS). Nearly every word of the
grammar is always the same; *open*, *clean* and *closed* are verbs or
adjectives, *to* stands before a verb or a place, *have* may be an auxiliary:
there the neighbours tell.

Examples:
>>> tags("the old man closed the open door")
['DET', 'ADJ', 'NOUN', 'VERB', 'DET', 'ADJ', 'NOUN']
"""

import functools

import phrase_inflection as inflection
import phrase_lexicon as lexicon
from phrase_clauses import VERBS
from phrase_nouns import ADJECTIVES, NOUNS

_BE = "am is are be"
_HELPERS = "do does did can cannot must"
# The words of the grammar's own patterns; nouns, verbs and adjectives come
# from the lexicon.
_CLOSED = {
    "DET": "the a an this that these those another all both some every",
    "NUM": "two three four five six seven eight nine ten",
    "PRON": "i he she we they who there",
    "AUX": f"{_BE} {_HELPERS}",
    "ADP": "in on under near from behind at of for",
    "CCONJ": "and but",
    "SCONJ": "because",
    "PART": "not",
    "VERB": "going want wants like likes",
    "ADV": "very quite too so always never often sometimes also slowly "
    "quickly carefully yesterday tomorrow tonight today now soon far less",
    "ADJ": "last next many several hungry thirsty sleepy afraid",
    "NOUN": "week year night day morning afternoon front",
}
_POSSESSIVE = "my our his her their"
_DEGREES = frozenset(lexicon.DEGREES) | {"as", "less"}
_FREQUENCIES = frozenset(lexicon.FREQUENCIES)


def tags(english):
    """Returns the tag of each word.

    Args:
        english: str, a sentence of the grammar.

    Returns:
        List of str, such as "NOUN", one for each word.

    Raises:
        ValueError: a word that the grammar does not have.

    Examples:
    >>> tags("she has to clean the box")
    ['PRON', 'AUX', 'PART', 'VERB', 'DET', 'NOUN']
    """
    words = english.split()
    found = []
    for place, word in enumerate(words):
        known = _known().get(word, ())
        if not known and word not in ("to", "as", "than"):
            raise ValueError(
                f"`english` must have words of the grammar. Received: {word!r}"
            )
        if word in ("to", "as", "than", "have", "has", "next", "so"):
            tag = _by_the_next(words, place, known)
        elif len(known) == 1:
            (tag,) = known
        else:
            tag = _verb_or_adjective(words[:place], words[place + 1 :], found)
        found.append(tag)
    return found


def _by_the_next(words, place, known):
    """Tags words that depend on what follows."""
    word, rest = words[place], words[place + 1 :]
    following = rest[0] if rest else ""
    if word == "to":
        infinitive = following == "be" or "VERB" in _known().get(following, ())
        return "PART" if infinitive else "ADP"
    if word == "as":
        # The first of *as old as* says how much, the second than what.
        return "ADV" if following in ADJECTIVES and "as" in rest else "ADP"
    if word == "than":
        return "ADP"
    if word in ("have", "has"):
        return "AUX" if following == "to" else "VERB"
    if word == "next":
        return "ADV" if following == "to" else "ADJ"
    return known[0]


def _verb_or_adjective(before, behind, found):
    """Tags *open*, *clean* and *closed*."""
    last, tag = (before[-1], found[-1]) if before else ("", "")
    if last in _FREQUENCIES or last == "not":
        return "ADJ" if before[-2] in _BE.split() else "VERB"
    if last in _BE.split() or last in _DEGREES:
        return "ADJ"
    if last == "and":
        # *The door is old and open*: who opens something is named.
        return "ADJ"
    named = tag in ("DET", "NUM", "ADJ") or last in _POSSESSIVE.split()
    if named and behind:
        following = _known().get(behind[0], ())
        return "ADJ" if following[:1] in (("NOUN",), ("ADJ",)) else "VERB"
    return "VERB"


@functools.cache
def _known():
    """Maps each word to the tags that it may have."""
    found = {}
    entries = [
        *((word, "NOUN") for word in NOUNS),
        *((inflection.english_plural(word), "NOUN") for word in NOUNS),
        *((word, "ADJ") for word in ADJECTIVES),
        *((word, "PRON") for word in _POSSESSIVE.split()),
        *(
            (word, tag)
            for tag, words in _CLOSED.items()
            for word in words.split()
        ),
    ]
    for verb, entry in VERBS.items():
        forms = verb, inflection.english_third_person(verb), entry.past
        entries += [(form, "VERB") for form in forms if form]
    for word, tag in entries:
        if tag not in found.setdefault(word, []):
            found[word].append(tag)
    return {word: tuple(known) for word, known in found.items()}
