"""Slips of the tongue in questions of the phrase grammar, as people make them.

In place: *who opened the red box no wait the black box*. Late: *what did the
king open sorry the queen*. And begun anew: *where is no who opened the red
box*. The wrong words come from the passage, as in Disfl-QA (Gupta et al. 2021,
https://arxiv.org/abs/2106.04016).
"""

import functools

import phrase_inflection as inflection
from phrase_nouns import NOUNS

CUES = (
    "no",
    "no wait",
    "sorry",
    "no sorry",
    "i mean",
    "no i mean",
    "or rather",
    "scratch that",
)
_DETERMINERS = frozenset({"the", "my", "our", "his", "her"})


def slip(draw, question):
    """Says a question with a slip.

    Args:
        draw: `random.Random`.
        question: `Question`.

    Returns:
        List of str, the disfluent question. `question.asked` is its repair.

    Examples:
    >>> import random
    >>> from questions import Question
    >>> asked = "who opened the red box".split()
    >>> passage = "the boy opened the red box . the girl sang .".split()
    >>> " ".join(slip(random.Random(4), Question(asked, passage, (0, 1))))
    'who opened the girl no sorry the red box'
    """
    asked, cue = question.asked, draw.choice(CUES).split()
    right = names(asked)
    spoken = [asked[first : last + 1] for first, last in right]
    wrong = [
        question.passage[first : last + 1]
        for first, last in names(question.passage)
    ]
    wrong = [name for name in wrong if name not in spoken]
    kind = draw.random()
    if not right or not wrong or kind < 0.3:
        begun = draw.choice(_BEGINNINGS).split()
        if wrong and draw.random() < 0.5:
            begun += draw.choice(wrong)
        return [*begun, *cue, *asked]
    first, last = draw.choice(right)
    meant, said = asked[first : last + 1], draw.choice(wrong)
    # Late, one must be able to tell which name was meant to be another.
    others = [name for name in spoken if name != meant]
    clear = _human(said) == _human(meant) and not any(
        _human(name) == _human(meant) for name in others
    )
    if clear and kind < 0.6:
        return [*asked[:first], *said, *asked[last + 1 :], *cue, *meant]
    return [*asked[:first], *said, *cue, *meant, *asked[last + 1 :]]


def names(words):
    """Finds what is named: from a determiner to the next noun.

    Args:
        words: list of str.

    Returns:
        List of tuple (first, last).

    Examples:
    >>> names("who gave the tall girl my hat".split())
    [(2, 4), (5, 6)]
    """
    found, first = [], None
    for place, word in enumerate(words):
        if word in _DETERMINERS:
            first = place
        elif word in _kinds() and first is not None:
            found.append((first, place))
            first = None
    return found


_BEGINNINGS = ("who", "what did", "where did", "where is", "which", "what is")


def _human(name):
    return _kinds()[name[-1]] == "human"


@functools.cache
def _kinds():
    """Maps each form of a noun to the kind of what it names."""
    return {
        form: entry.kind
        for noun, entry in NOUNS.items()
        for form in (noun, inflection.english_plural(noun))
    }
