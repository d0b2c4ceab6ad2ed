"""make_misspellings: misspelled words and their corrections."""

import functools
from collections.abc import Collection, Sequence
from typing import NamedTuple

from keras_attn import checks
from keras_attn.datasets.content_split import SPLITS
from keras_attn.datasets.sampling import check_arguments
from keras_attn.datasets.spelling.noise import add_errors
from keras_attn.datasets.spelling_words import spelling_words
from keras_attn.datasets.stable_random import StableRandom

_SHORTEST = 3
# A word of few letters may have errors that make another word of the list.
_MOST_DRAWS = 10_000


class Misspelling(NamedTuple):
    """A misspelled word and its correction.

    Args:
        wrong: str.
        right: str.

    Examples:
        >>> word = keras_attn.datasets.Misspelling("recieve", "receive")
        >>> word.right
        'receive'
    """

    wrong: str
    right: str


def make_misspellings(
    n: int,
    *,
    seed: int = 0,
    split: str = "train",
    words: Sequence[str] | None = None,
    unchanged_rate: float = 0.0,
) -> list[Misspelling]:
    """Makes misspellings of English words.

    For spelling correction at the level of letters. The errors are those of
    `misspell`, drawn at random: with another seed, such as the number of the
    epoch, a word has another misspelling. A misspelling is never a word of
    `words` or of `spelling_words`.

    Words are drawn in random order, each once before any is drawn again: n =
    `len(words)` gives each word once. The splits are those of `spelling_words`;
    no form of a word of one split is in another.

    Args:
        n: int >= 0. Number of misspellings.
        seed: int >= 0. Default 0.
        split: "train", "validation" or "test". Must be "train" if `words` is
            given. Default "train".
        words: list of str, your own words to misspell, in lower case. Words of
            one or two characters are unchanged. Default None: the words of
            `spelling_words(split)` that have at least three letters.
        unchanged_rate: float in [0, 1]. Probability that a word is unchanged
            (`wrong == right`), so that a model learns not to change what is
            right. Default 0.0.

    Returns:
        List of `Misspelling`.

    Raises:
        ValueError: an argument is invalid, or a word has no misspelling that is
            not a word itself.

    Examples:
        >>> for wrong, right in keras_attn.datasets.make_misspellings(4):
        ...     print(wrong, "->", right)
        chemiclly -> chemically
        rerfer -> refer
        trasnfer -> transfer
        calculatning -> calculating
        >>> words = ["separate", "weather"]
        >>> keras_attn.datasets.make_misspellings(1, seed=1, words=words)
        [Misspelling(wrong='sepparato', right='separate')]
    """
    check_arguments(n, seed, split)
    checks.between("unchanged_rate", unchanged_rate, 0, 1)
    known = _known_words()
    if words is None:
        words = [w for w in spelling_words(split) if len(w) >= _SHORTEST]
    else:
        if split != "train":
            raise ValueError(
                "`split` must be 'train' with `words` of your own. "
                f"Received: split={split!r}"
            )
        words = _word_list("words", words)
        if not words:
            raise ValueError(
                "`words` must have at least one word. Received: words=[]"
            )
        known = known.union(words)
    random = StableRandom(seed)
    found, order = [], []
    while len(found) < n:
        # Drawn from the end.
        order = order or random.sample(words, len(words))
        right = order.pop()
        # Drawn for every word, so that the order does not depend on the rate.
        unchanged = random.happens(unchanged_rate)
        if unchanged or len(right) < _SHORTEST:
            found.append(Misspelling(right, right))
        else:
            wrong = _misspelled("words", right, random, known)
            found.append(Misspelling(wrong, right))
    return found


def misspell(
    word: str, *, seed: int = 0, known_words: Collection[str] = ()
) -> str:
    """Misspells a word as people do.

    Four words in five get one error, the others two. Of 100 errors, 25 omit a
    letter ("goverment"), 15 swap two letters ("freind"), 14 write another vowel
    ("seperate"), 12 another spelling of a sound ("independance"), 12 add a
    letter of the word ("explaination"), 9 double a letter ("untill"), 6 write a
    double letter once ("accomodate"), and 7 hit a neighboring key ("wprld"),
    where the word allows it. The first letter is wrong a tenth as often as each
    other letter. These frequencies are chosen, not measured.

    Args:
        word: str of at least three characters, in lower case.
        seed: int >= 0. Another seed gives another misspelling. Default 0.
        known_words: collection of str. Words that are right, and so no
            misspellings. Default ().

    Returns:
        str, at most two characters longer than `word`.

    Raises:
        ValueError: an argument is invalid, or all misspellings that were drawn
            are in `known_words`.

    Examples:
        >>> misspell = keras_attn.datasets.misspell
        >>> [misspell("separate", seed=seed) for seed in range(4)]
        ['spearata', 'spearate', 'separato', 'seprate']
    """
    if len(checks.string("word", word).strip()) < _SHORTEST:
        raise ValueError(
            f"`word` must have at least {_SHORTEST} characters. "
            f"Received: word={checks.shown(word)}"
        )
    checks.integer("seed", seed, 0)
    known = frozenset(_word_list("known_words", known_words, sets=True))
    return _misspelled("word", word, StableRandom(seed), known)


def _misspelled(name, word, random, known):
    for _ in range(_MOST_DRAWS):
        wrong = add_errors(word, random)
        if wrong != word and wrong not in known:
            return wrong
    raise ValueError(
        f"`{name}` must have a misspelling that is not a known word. "
        f"Received: {checks.shown(word)}"
    )


@functools.cache
def _known_words():
    return frozenset(word for split in SPLITS for word in spelling_words(split))


def _word_list(name, words, sets=False):
    words = list(checks.iterable(name, words, "a list of str", sets))
    for word in words:
        if not isinstance(word, str) or not word.strip():
            raise ValueError(
                f"`{name}` must be a list of str that are not blank. "
                f"Received: an item {checks.shown(word)}"
            )
    return words
