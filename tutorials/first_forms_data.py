"""Sentences for the tutorial on the first forms: made up, or a reader's own."""

from typing import NamedTuple

import corpora
import noun_lists
import numpy as np
from pair_table import words_of

# One of those that are kept for tests.
SHOWN = noun_lists.listed(
    [
        noun_lists.thing("my", "car", "red"),
        noun_lists.thing("two", "tree", "old", plural=True),
        noun_lists.thing("the", "box"),
    ]
)
# A thing has at most three words, and an "and" stands between two.
_WORDS_OF_A_THING = 4


class Sentences(NamedTuple):
    """What is trained and tested on; the last of the test is to be shown.

    Args:
        train: list of (source, target).
        test: list of (source, target).
        links: for each pair of the test a tuple of int, for each target word
            the place of the source word that it translates; None where that
            is not known.
        further: int. How many more words a sentence of the test may have than
            any that is trained on.
    """

    train: list
    test: list
    links: list | None
    further: int


def made_up(pairs, tests, longest, seed):
    """Draws lists of things; the test has some with two things more.

    Args:
        pairs: int. Lists to train on.
        tests: int. Lists to test on, `SHOWN` among them.
        longest: int >= 3. The most words of a list that is trained on.
        seed: int.

    Returns:
        `Sentences`.

    Raises:
        ValueError: there are not so many lists.
    """
    most = (longest + 1) // _WORDS_OF_A_THING or 1
    train = noun_lists.draw_lists(pairs, 1, most, seed=seed)
    test = noun_lists.draw_lists(
        tests - 1, 1, most + 2, held_out=True, seed=seed
    )
    test.append(SHOWN)
    return Sentences(
        [one.pair for one in train],
        [one.pair for one in test],
        [one.links for one in test],
        2 * _WORDS_OF_A_THING,
    )


def of_corpus(path, pairs, tests, longest, seed):
    """Reads a parallel corpus, and takes some of its short sentences.

    Args:
        path: str, as for `corpora.read_pairs`.
        pairs: int. The most pairs to train on.
        tests: int. The most pairs to test on.
        longest: int. The most words of a sentence, in both languages.
        seed: int. Of the choice, and of the order.

    Returns:
        `Sentences`. No source of the test is among those trained on.

    Raises:
        ValueError: the corpus cannot be read, or holds too few.
    """
    train, _, test = (
        [
            pair
            for pair in part
            if max(len(words_of(side)) for side in pair) <= longest
        ]
        for part in corpora.split_by_source(corpora.read_pairs(path))
    )
    if not train or not test:
        raise ValueError(
            f"{path} has too few sentences of at most {longest} words: "
            f"{len(train)} to train on, {len(test)} to test on."
        )
    generator = np.random.default_rng(seed)
    train, test = (
        [part[i] for i in generator.permutation(len(part))[:count]]
        for part, count in ((train, pairs), (test, tests))
    )
    # The last one is to be shown: neither short nor too long for a picture.
    test.sort(key=lambda pair: abs(len(words_of(pair[0])) - 7) < 1)
    return Sentences(train, test, None, 0)
