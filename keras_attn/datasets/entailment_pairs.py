"""make_entailment_pairs: premises and hypotheses."""

from typing import NamedTuple

from keras_attn.datasets import sampling
from keras_attn.datasets.phrase_grammar.facts import sentence
from keras_attn.datasets.phrase_grammar.passages import (
    passage,
    split_of,
    variations,
)


class EntailmentPair(NamedTuple):
    """A premise and a hypothesis.

    Args:
        premise: str.
        hypothesis: str.
        entailed: bool. Whether the hypothesis is true whenever the premise is.

    Examples:
        >>> pair = keras_attn.datasets.EntailmentPair(
        ...     "the tall man ate a pear", "the man ate a pear", True)
        >>> pair.entailed
        True
    """

    premise: str
    hypothesis: str
    entailed: bool


def make_entailment_pairs(
    n: int, *, seed: int = 0, split: str = "train"
) -> list[EntailmentPair]:
    """Makes pairs of sentences, the first of which may entail the second.

    For classification of sentence pairs. In half of the pairs, the hypothesis
    omits adjectives or the location of the premise, and so follows from it. In
    the others, one part of the premise is replaced by another one, or an
    adjective is added; such a hypothesis does not follow.

    Sentences have 4 to 11 words, in lower case, without punctuation, from about
    280 different words. Millions of pairs are distinct.

    The premises of the test split have an adjective that describes a noun ("the
    large cat", "the cat is large") with which it is in no pair of the other
    splits. 5 % of the other premises, by their words, are for validation. No
    premise is in two splits.

    Args:
        n: int >= 0. Number of pairs.
        seed: int >= 0. Default 0.
        split: "train", "validation" or "test". Default "train".

    Returns:
        List of n distinct `EntailmentPair`.

    Raises:
        ValueError: an argument is invalid.

    Examples:
        >>> for pair in keras_attn.datasets.make_entailment_pairs(4)[::3]:
        ...     print(pair.entailed)
        ...     print(" ", pair.premise)
        ...     print(" ", pair.hypothesis)
        True
          the famous brother is in the church
          the brother is in the church
        False
          her kind girls read my big letter
          her kind girls read my boring letter
    """
    sampling.check_arguments(n, seed, split)
    return sampling.take_distinct(n, _candidates(seed, split))


def _candidates(seed, split):
    random = sampling.named_random(seed, "entailment pairs")
    entailed = True
    while True:
        facts = passage(random)
        premise = random.choice(facts)
        if entailed:
            others = _generalizations(premise)
        else:
            others = [
                other
                for other in variations(facts, premise)
                if not _may_entail(premise, other)
            ]
        if split_of([premise]) != split or not others:
            yield None
            continue
        texts = [
            " ".join(sentence(fact)[0])
            for fact in (premise, random.choice(others))
        ]
        yield tuple(texts), EntailmentPair(*texts, entailed)
        entailed = random.happens(0.5)


def _generalizations(fact):
    """Returns the facts that state less, but not the fact itself."""
    found = [fact]
    for field in ("subject", "object"):
        if getattr(fact, field):
            found += [
                other._replace(
                    **{field: getattr(other, field)._replace(adjective=None)}
                )
                for other in found
            ]
    if fact.location and fact.verb != "be":
        found += [other._replace(location=None) for other in found]
    return [other for other in dict.fromkeys(found) if other != fact]


def _may_entail(premise, other):
    """Whether a fact follows from another, but for determiner and number.

    Those that differ in determiner or number only are neither true nor false.
    """
    location, other_location = premise.location, other.location
    return (
        premise.verb == other.verb
        and premise.predicate == other.predicate
        and _includes(premise.subject, other.subject)
        and _includes(premise.object, other.object)
        and (
            other_location is None
            or (
                location is not None
                and location[0] == other_location[0]
                and _includes(location[1], other_location[1])
            )
        )
    )


def _includes(entity, other):
    if entity is None or other is None:
        return entity is other
    is_less = other.adjective in (None, entity.adjective)
    return entity.noun == other.noun and is_less
