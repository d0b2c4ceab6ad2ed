"""Questions about passages of the phrase grammar, some without an answer.

What is asked in vain is made of the words of the passage, too: the same verb
with another subject, the same man with another box.
"""

import random
from typing import NamedTuple

import phrase_grammar
from phrase_facts import answers, ask, roles
from phrase_passages import exchanged, passage, twisted, write
from questions import Question


class QuestionSplits(NamedTuple):
    """Holds three lists of `Question`.

    Args:
        train: list, to learn from: no passage has a held-out combination.
        validation: list, likewise, of other passages.
        test: list. Every question is about a sentence in which a noun and an
            adjective meet that never meet in the other two.

    Examples:
    >>> QuestionSplits([], [], []).test
    []
    """

    train: list
    validation: list
    test: list


def question_splits(train=24_000, validation=1_000, test=2_000, seed=0):
    """Draws questions, about a quarter of them without an answer.

    Args:
        train: int >= 0, the number of training questions. Default 24,000.
        validation: int >= 0. Default 1,000.
        test: int >= 0. Default 2,000.
        seed: int. The same seed gives the same questions. Default 0.

    Returns:
        `QuestionSplits`.

    Raises:
        ValueError: a size is negative.

    Examples:
    >>> [len(part) for part in question_splits(20, 5, 3)]
    [20, 5, 3]
    """
    sizes = QuestionSplits(train, validation, test)
    if min(sizes) < 0:
        raise ValueError(f"Sizes must not be negative. Received: {sizes}")
    draw = random.Random(seed)
    splits = QuestionSplits([], [], [])
    while any(
        len(have) < want for have, want in zip(splits, sizes, strict=True)
    ):
        facts = passage(draw)
        about = {number for number, fact in enumerate(facts) if is_new(fact)}
        if about:
            name = "test"
        else:
            about = set(range(len(facts)))
            full = len(splits.validation) == validation
            name = "train" if full else "validation"
        part = getattr(splits, name)
        room = getattr(sizes, name) - len(part)
        part += draw_questions(draw, facts, about)[:room]
    return splits


def draw_questions(draw, facts, about, most=4):
    """Draws a few questions about a passage.

    Args:
        draw: `random.Random`.
        facts: list of `Fact`.
        about: set of int, the facts that may be asked about.
        most: int >= 2. Questions at most. Default 4.

    Returns:
        List of `Question`: some that the passage answers, and often one that
        it does not, so that these are a quarter of all.
    """
    known = [
        question for number, _, question in answered(facts) if number in about
    ]
    in_vain = [
        question for number in sorted(about) for question in vain(facts, number)
    ]
    chosen = draw.sample(known, min(len(known), most - 1))
    if in_vain and draw.random() < len(chosen) / (most - 1):
        chosen.append(draw.choice(in_vain))
    return chosen


def answered(facts):
    """Asks everything that a passage says once, and so leaves no doubt about.

    Args:
        facts: list of `Fact`.

    Returns:
        List of tuple (number of the fact, role, `Question`).
    """
    words, spans = write(facts)
    return [
        (number, role, Question(ask(fact, role), words, spans[number][role]))
        for number, fact in enumerate(facts)
        for role in roles(fact)
        if role in spans[number] and answers(facts, fact, role) == [number]
    ]


def vain(facts, number):
    """Asks what a passage does not say, in its own words.

    Args:
        facts: list of `Fact`.
        number: int. The fact that is asked about, as it is or twisted.

    Returns:
        List of `Question` without a span.
    """
    words, _ = write(facts)
    fact = facts[number]
    return [
        Question(ask(other, role), words, None)
        for other in (fact, *twisted(facts, fact))
        for role in roles(other)
        if not answers(facts, other, role)
    ]


def exchanged_names(draw):
    """Asks who did something, before and after two people change places.

    Args:
        draw: `random.Random`.

    Returns:
        Tuple of two `Question`, asked in the same words about passages in which
        the subjects of two sentences have been exchanged, and nothing else.
    """
    while True:
        facts = passage(draw)
        doers = [n for n, fact in enumerate(facts) if fact.subject.human]
        if len(doers) < 2:
            continue
        one, other = draw.sample(doers, 2)
        before, after = (
            [
                question
                for number, role, question in answered(version)
                if (number, role) == (one, "subject")
                and facts[one].verb != "be"
            ]
            for version in (facts, exchanged(facts, one, other))
        )
        if not before or not after or before[0].answer == after[0].answer:
            continue
        # "is" and "are" would tell them apart.
        if sorted(before[0].passage) == sorted(after[0].passage):
            return before[0], after[0]


def is_new(fact):
    """Returns whether a noun and its adjective meet in test passages only.

    Args:
        fact: `Fact`.

    Returns:
        Bool.

    Examples:
    >>> from phrase_facts import Fact, Thing
    >>> is_new(Fact(Thing("the", "large", "cat"), "be", quality="calm"))
    True
    """
    things = [fact.subject, fact.object, fact.place and fact.place[1]]
    pairs = [(one.noun, one.adjective) for one in things if one]
    pairs.append((fact.subject.noun, fact.quality))
    return any(
        adjective and phrase_grammar.is_held_out(noun, adjective)
        for noun, adjective in pairs
    )
