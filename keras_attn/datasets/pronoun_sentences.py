"""make_pronoun_sentences: sentences with a pronoun to resolve."""

from typing import NamedTuple

from keras_attn.datasets.sampling import check_arguments
from keras_attn.datasets.stable_random import StableRandom

_ANIMALS = "animal dog cat horse goat cow duck sheep".split()
_PLACES = "street river bridge road field stream hill path".split()
_THINGS = "box bag book chair lamp trunk case drum".split()
_OF_ANIMALS = "tired old weak ill lazy hungry".split()
_OF_PLACES = "wide deep long steep muddy busy".split()
_OF_INNER = "big large thick".split()
_OF_OUTER = "small narrow full".split()
_VERBS = {"cross": "crossed", "reach": "reached", "leave": "left"}
# The nouns i and j of a pair have remainder (i + j) mod 6.
_REMAINDERS, _HELD_OUT = 6, {0: "test", 1: "validation"}


class PronounSentence(NamedTuple):
    """A sentence with the pronoun *it*, and the noun that it refers to.

    Args:
        words: tuple of str.
        pronoun: int. Index of "it" in `words`.
        antecedent: int. Index of the noun that the pronoun refers to.
        other: int. Index of the other noun.
        cue: int. Index of the adjective, which decides between the nouns.

    Examples:
        >>> sentence = keras_attn.datasets.make_pronoun_sentences(1)[0]
        >>> " ".join(sentence.words)
        'because it was too hungry the animal did not cross the road .'
        >>> sentence.words[sentence.antecedent]
        'animal'
    """

    words: tuple[str, ...]
    pronoun: int
    antecedent: int
    other: int
    cue: int


def make_pronoun_sentences(
    n: int, *, seed: int = 0, split: str = "train"
) -> list[PronounSentence]:
    """Makes sentences in which an adjective decides what *it* refers to.

        the animal did not cross the street because it was too tired .
        the animal did not cross the street because it was too wide .
        the box did not fit into the bag because it was too small .

    For pronoun resolution: predict the antecedent at the position of the
    pronoun. The sentences are of the kind of the Winograd schemas (Levesque et
    al. 2012); the first two are those of Vaswani et al. 2017. In six sentences
    of ten, the nouns are an animal and a place, and the meaning of the
    adjective decides. In the others they are two things, and only the role
    does: any thing may be the one that does not fit. Three in ten sentences
    begin with the reason ("because it was too tired the animal did ..."), and
    three in ten of those about animals are passive.

    There are 59 different words, among them 24 nouns and 18 adjectives, and 13
    or 14 words in a sentence. Pairs of nouns are held out, in either order: 15
    of 92 for the test split and 18 for the validation split. Sentences are
    drawn independently, so they repeat; about 6,300 training, 1,900 validation
    and 1,700 test sentences are different.

    Args:
        n: int >= 0. Number of sentences.
        seed: int >= 0. Default 0.
        split: "train", "validation" or "test". Default "train".

    Returns:
        List of `PronounSentence`.

    Raises:
        ValueError: an argument is invalid.

    Examples:
        >>> sentences = keras_attn.datasets.make_pronoun_sentences(
        ...     2, split="test")
        >>> for sentence in sentences:
        ...     words = sentence.words
        ...     print(" ".join(words), "->", words[sentence.antecedent])
        the goat did not cross the bridge because it was too busy . -> bridge
        the lamp did not fit into the book because it was too narrow . -> book
    """
    check_arguments(n, seed, split)
    random = StableRandom(seed)
    return [_sentence(random, split) for _ in range(n)]


def _sentence(random, split):
    has_animal = random.happens(0.6)
    while True:
        i, j = (random.integer(len(_ANIMALS)) for _ in range(2))
        part = _HELD_OUT.get((i + j) % _REMAINDERS, "train")
        if part == split and (has_animal or i != j):
            break
    is_first = random.happens(0.5)
    if has_animal:
        first, second = _ANIMALS[i], _PLACES[j]
        adjectives = _OF_ANIMALS if is_first else _OF_PLACES
        verb = random.choice(list(_VERBS))
        clause = f"the {first} did not {verb} the {second}"
        if random.happens(0.3):
            clause = f"the {second} was not {_VERBS[verb]} by the {first}"
    else:
        first, second = _THINGS[i], _THINGS[j]
        adjectives = _OF_INNER if is_first else _OF_OUTER
        clause = f"the {first} did not fit into the {second}"
    reason = f"because it was too {random.choice(adjectives)}"
    order = [reason, clause] if random.happens(0.3) else [clause, reason]
    words = (*" ".join(order).split(), ".")
    nouns = (first, second) if is_first else (second, first)
    antecedent, other = map(words.index, nouns)
    return PronounSentence(
        words, words.index("it"), antecedent, other, words.index("too") + 1
    )
