"""Parts of speech of the English sentences.

Few words have several tags: "open", "clean" and "closed" are verbs or
adjectives, and "to" is a particle or a preposition. The words around them
decide.
"""

import functools
from collections.abc import Sequence
from typing import Any

from keras_attn.datasets.phrase_grammar import inflection
from keras_attn.datasets.phrase_grammar.lexicon import (
    ADJECTIVES,
    DEGREES,
    FREQUENCIES,
    NOUNS,
    VERBS,
)

_BE = frozenset("am is are be".split())
_POSSESSIVES = frozenset("my our his her their".split())
# Words that are not in the tables of nouns, adjectives and verbs.
_WORDS = {
    "DET": "the a an this that these those another all both some every",
    "NUM": "two three four five six seven eight nine ten",
    "PRON": "i he she we they who there my our his her their",
    "AUX": "am is are be do does did can cannot must",
    "ADP": "in on under near from behind at of for than",
    "CCONJ": "and but",
    "SCONJ": "because",
    "PART": "not",
    "VERB": "going want wants like likes",
    "ADV": "very quite too so always never often sometimes also slowly "
    "quickly carefully yesterday tomorrow tonight today now soon far less",
    "ADJ": "last many several hungry thirsty sleepy afraid",
    "NOUN": "week year night day morning afternoon front",
}
_DEGREES = frozenset(DEGREES) | {"as", "less"}
_NOT_IN_TABLES = frozenset({"to", "as", "next"})


def tag(words: Sequence[str]) -> Any:
    """Returns the UPOS tags of a sentence of the grammar, a list of str."""
    tags = []
    for index, word in enumerate(words):
        known = _known_tags().get(word, ())
        if word in _NOT_IN_TABLES:
            tags.append(_tag_by_next_word(word, words[index + 1 :]))
        elif len(known) == 1:
            tags.append(known[0])
        else:
            before, after = words[:index], words[index + 1 :]
            tags.append(_verb_or_adjective(before, after, tags))
    return tags


def _tag_by_next_word(word, after):
    following = after[0] if after else ""
    if word == "to":
        is_verb = following == "be" or "VERB" in _known_tags()[following]
        return "PART" if is_verb else "ADP"
    if word == "as":
        # In "as old as", the first is an adverb, the second a preposition.
        return "ADV" if following in ADJECTIVES and "as" in after else "ADP"
    return "ADV" if following == "to" else "ADJ"


def _verb_or_adjective(before, after, tags):
    """Returns the tag of "open", "clean" or "closed"."""
    last, tag = (before[-1], tags[-1]) if before else ("", "")
    if last in FREQUENCIES or last == "not":
        return "ADJ" if before[-2] in _BE else "VERB"
    if last in _BE or last in _DEGREES:
        return "ADJ"
    if last == "and":
        # "The door is old and open": a verb has its subject before it.
        return "ADJ"
    in_noun_phrase = tag in ("DET", "NUM", "ADJ") or last in _POSSESSIVES
    if in_noun_phrase and after:
        following = _known_tags().get(after[0], ())
        return "ADJ" if following[:1] in (("NOUN",), ("ADJ",)) else "VERB"
    return "VERB"


@functools.cache
def _known_tags():
    """Maps each word to the tags that it can have."""
    entries = [
        *((noun, "NOUN") for noun in NOUNS),
        *((inflection.english_plural(noun), "NOUN") for noun in NOUNS),
        *((adjective, "ADJ") for adjective in ADJECTIVES),
        *((w, tag) for tag, words in _WORDS.items() for w in words.split()),
    ]
    for verb, entry in VERBS.items():
        forms = verb, inflection.third_person(verb), entry.past
        entries += [(form, "VERB") for form in forms if form]
    found = {}
    for word, tag in entries:
        tags = found.setdefault(word, [])
        if tag not in tags:
            tags.append(tag)
    return {word: tuple(tags) for word, tags in found.items()}
