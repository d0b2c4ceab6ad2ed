"""Sentences in which the last word decides what *it* is.

    the animal did not cross the street because it was too tired .   animal
    the animal did not cross the street because it was too wide .    street
    the box did not fit into the bag because it was too small .      bag

In the first two the kind of the noun decides, in the third its role: any thing
may be the one that does not fit, or the one that it does not fit into.
"""

from typing import NamedTuple

import numpy as np

ANIMALS = "animal dog cat horse goat cow duck sheep".split()
PLACES = "street river bridge road field stream hill path".split()
THINGS = "box bag book chair lamp trunk case drum".split()
OF_ANIMALS = "tired old weak ill lazy hungry".split()
OF_PLACES = "wide deep long steep muddy busy".split()
OF_INNER, OF_OUTER = "big large thick".split(), "small narrow full".split()
ACTS = {"cross": "crossed", "reach": "reached", "leave": "left"}
PAD, HIDDEN = 0, 1
_SMALL = "the did not was by because it too fit into .".split()
_ADJECTIVES = OF_ANIMALS + OF_PLACES + OF_INNER + OF_OUTER
_WORDS = [_SMALL, ACTS, ACTS.values(), ANIMALS, PLACES, THINGS, _ADJECTIVES]
VOCABULARY = ["", "_", *dict.fromkeys(word for part in _WORDS for word in part)]
IT = VOCABULARY.index("it")
LENGTH = 14  # tokens of the longest sentence
# Pairs of nouns of which one in so many is kept for tests.
_KEPT = 6


class Pronouns(NamedTuple):
    """Holds sentences, and what is known of them.

    Args:
        tokens: int32 (B, `LENGTH`), ids in `VOCABULARY`, padding behind.
        it: int32 (B,), the place of *it*.
        right: int32 (B,), the place of the noun that it is.
        wrong: int32 (B,), the place of the other noun.
        deciding: int32 (B,), the place of the adjective.
    """

    tokens: np.ndarray
    it: np.ndarray
    right: np.ndarray
    wrong: np.ndarray
    deciding: np.ndarray

    @property
    def labels(self):
        """Int32 (B, `LENGTH`): at *it* the noun that it is, 0 elsewhere."""
        rows = np.arange(len(self.tokens))
        labels = np.zeros_like(self.tokens)
        labels[rows, self.it] = self.tokens[rows, self.right]
        return labels


def draw(count, seed=0, kept=False):
    """Draws sentences.

    Args:
        count: int >= 0. B.
        seed: int. The same seed draws the same. Default 0.
        kept: bool. Those with a pair of nouns that is kept for tests, instead
            of those with another pair. Default False.

    Returns:
        `Pronouns`.
    """
    generator = np.random.default_rng([seed, kept])
    return _of([_drawn(generator, kept) for _ in range(count)])


def of_words(first, second, adjective, act="cross"):
    """Returns one sentence: *first* did not do something with *second*.

    Args:
        first: str, of `ANIMALS`, or of `THINGS`.
        second: str, of `PLACES`, or of `THINGS`.
        adjective: str that suits one of them.
        act: str, of `ACTS`; things do not fit into each other.

    Returns:
        `Pronouns`, one row.
    """
    right = first if adjective in [*OF_ANIMALS, *OF_INNER] else second
    act = f"{act} the" if first in ANIMALS else "fit into the"
    words = f"the {first} did not {act} {second} because it was too"
    return _of([(f"{words} {adjective} .".split(), first, second, right)])


def hide(sentences, seed=0):
    """Hides words of sentences at random, of each another share; never *it*.

    Args:
        sentences: `Pronouns`.
        seed: int. Default 0.

    Returns:
        Int32 (B, `LENGTH`), tokens with `HIDDEN` in the place of some.
    """
    generator = np.random.default_rng(seed)
    tokens = sentences.tokens
    share = generator.random((len(tokens), 1))
    hidden = generator.random(tokens.shape) < share
    hidden &= (tokens != PAD) & (tokens != IT)
    return np.where(hidden, HIDDEN, tokens).astype("int32")


def words(tokens):
    """Returns the words of a row of ids, without padding."""
    return [VOCABULARY[i] for i in tokens if i != PAD]


def _drawn(generator, kept):
    pick = generator.integers
    kinds = generator.random() < 0.6
    while True:
        i, j = pick(len(ANIMALS), size=2)
        if (kinds or i != j) and ((i + j) % _KEPT == 0) == kept:
            break
    one = generator.random() < 0.5  # it is the first of the two
    if kinds:
        first, second = ANIMALS[i], PLACES[j]
        adjectives = OF_ANIMALS if one else OF_PLACES
        act = list(ACTS)[pick(len(ACTS))]
        did = f"the {first} did not {act} the {second}"
        if generator.random() < 0.3:
            did = f"the {second} was not {ACTS[act]} by the {first}"
    else:
        first, second = THINGS[i], THINGS[j]
        adjectives = OF_INNER if one else OF_OUTER
        did = f"the {first} did not fit into the {second}"
    why = f"because it was too {adjectives[pick(len(adjectives))]}"
    turned = generator.random() < 0.3
    text = f"{why} {did} ." if turned else f"{did} {why} ."
    return text.split(), first, second, first if one else second


def _of(drawn):
    tokens = np.zeros((len(drawn), LENGTH), "int32")
    places = np.zeros((4, len(drawn)), "int32")
    for row, (text, first, second, right) in enumerate(drawn):
        tokens[row, : len(text)] = [VOCABULARY.index(word) for word in text]
        wrong = second if right == first else first
        places[:, row] = [
            text.index("it"),
            text.index(right),
            text.index(wrong),
            text.index("too") + 1,
        ]
    return Pronouns(tokens, *places)
