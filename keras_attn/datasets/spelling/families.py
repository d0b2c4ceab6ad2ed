"""The words of the lexicon in all their forms, in families."""

import functools
from typing import Any

from keras_attn.datasets.spelling import english_forms as forms
from keras_attn.datasets.spelling import lexicon
from keras_attn.datasets.word_stem import word_stem


@functools.cache
def families() -> tuple[Any, ...]:
    """Returns all words, grouped into families.

    Words are in one family if they are forms of one word, have the same stem,
    or are both related to a third word in these ways.

    Returns:
        Tuple of tuples of str, sorted. Each word is in one of them.

    Examples:
        >>> from keras_attn.datasets.spelling.families import families
        >>> [family for family in families() if "knife" in family]
        [('knife', 'knives')]
    """
    found = {}
    for members in _inflected():
        # A stem in a tuple differs from a word of the same letters.
        keys = set(members) | {(word_stem(word),) for word in members}
        for key in list(keys):
            keys |= found.get(key, set())
        found.update(dict.fromkeys(keys, keys))
    unique = {id(keys): keys for keys in found.values()}.values()
    return tuple(
        sorted(
            tuple(sorted(key for key in keys if isinstance(key, str)))
            for keys in unique
        )
    )


def _inflected():
    """Yields tuples of the forms of one word."""
    for verb in lexicon.VERBS.split():
        yield _verb(verb, forms.with_ed(verb))
    for row in _rows(lexicon.IRREGULAR_VERBS):
        yield _verb(*row)
    for noun in lexicon.NOUNS.split():
        yield noun, forms.with_s(noun)
    yield from _rows(lexicon.IRREGULAR_PLURALS)
    yield from _rows(lexicon.RELATED_FORMS)
    for adjective in lexicon.ADJECTIVES.split():
        yield adjective, forms.with_ly(adjective)
    for adjective in lexicon.GRADED_ADJECTIVES.split():
        yield adjective, *forms.compared(adjective)
    for table in (
        lexicon.MASS_NOUNS,
        lexicon.PLAIN_ADJECTIVES,
        lexicon.OTHERS,
    ):
        for word in table.split():
            yield (word,)


def _verb(base, *others):
    return base, forms.with_s(base), forms.with_ing(base), *others


def _rows(table):
    rows = table.replace("\n", "|").split("|")
    return [tuple(row.split()) for row in rows if row]
