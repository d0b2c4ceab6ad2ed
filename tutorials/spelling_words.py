"""The words that the spelling tutorial learns to spell, and those held out.

They are the words of the phrase grammar and common English words, all in lower
case. Words that share a form or a stem, such as *write*, *written* and
*writer*, or *calculate* and *calculations*, are a family, which is held out as
a whole.
"""

import functools
import hashlib

import english_forms as forms
import phrase_inflection
import phrase_lexicon
import spelling_lexicon as lexicon
from word_stems import stem


@functools.cache
def families():
    """Returns all words, those together that belong together.

    Returns:
        Tuple of tuples of str, sorted; no word stands in two of them.
    """
    found = {}
    for members in _inflected():
        keys = set(members) | {(stem(word),) for word in members}
        # What another word shares with one of these, it shares with all.
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


def split_words():
    """Splits the words so that no family is on two sides.

    Which side a family is on is a matter of its first word w in the alphabet:
    h = sha256(w) mod 20, held out where h is 0 or 1.

    Returns:
        Tuple (words to train on, words held out) of sorted lists of str.
    """
    sides = [], []
    for family in families():
        digest = hashlib.sha256(family[0].encode("utf-8")).hexdigest()
        sides[int(digest, 16) % 20 < 2].extend(family)
    return tuple(map(sorted, sides))


def _inflected():
    """Yields tuples of the forms of one word."""
    for verb in lexicon.VERBS.split():
        yield _of_verb(verb, forms.with_ed(verb))
    for row in _rows(lexicon.IRREGULAR_VERBS):
        yield _of_verb(*row)
    for noun in lexicon.NOUNS.split():
        yield noun, forms.with_s(noun)
    yield from _rows(lexicon.IRREGULAR_PLURALS)
    yield from _rows(lexicon.PARTICIPLES)
    for adjective in lexicon.ADJECTIVES.split():
        yield adjective, forms.with_ly(adjective)
    for adjective in lexicon.GRADED.split():
        yield adjective, *forms.compared(adjective)
    for table in (
        lexicon.MASS_NOUNS,
        lexicon.PLAIN_ADJECTIVES,
        lexicon.OTHERS,
    ):
        for word in table.split():
            yield (word,)
    yield from _of_grammar()


def _of_grammar():
    """Yields the forms of the nouns, adjectives and verbs of the grammar."""
    for entries in phrase_lexicon.NOUNS.values():
        for entry in entries.split():
            noun = entry.partition("|")[0]
            if noun.endswith("*"):
                yield (noun[:-1],)
            else:
                yield noun, phrase_inflection.english_plural(noun)
    for adjective, *_ in phrase_lexicon.rows(phrase_lexicon.ADJECTIVES):
        yield (adjective,)
    for verb, past, *_ in phrase_lexicon.rows(phrase_lexicon.VERBS):
        present = phrase_inflection.english_third_person(verb)
        yield tuple(filter(None, (verb, present, past, forms.with_ing(verb))))


def _of_verb(base, *others):
    return base, forms.with_s(base), forms.with_ing(base), *others


def _rows(table):
    rows = table.replace("\n", "|").split("|")
    return [tuple(row.split()) for row in rows if row.strip()]
