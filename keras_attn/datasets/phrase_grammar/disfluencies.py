"""Disfluent questions: a wrong word, a cue, and the correction.

At once: "who opened the red box no wait the black box". Late: "what did the
king open sorry the queen". Or restarted: "where is no who opened the red box".
"""

import functools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from keras_attn.datasets.phrase_grammar import inflection
from keras_attn.datasets.phrase_grammar.lexicon import NOUNS
from keras_attn.typing import Tensor

if TYPE_CHECKING:
    from keras_attn.datasets.stable_random import StableRandom


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
_STARTS = ("who", "what did", "where did", "where is", "which", "what is")
_DETERMINERS = frozenset({"the", "my", "our", "his", "her"})


def add_disfluency(
    random: "StableRandom", question: Any, context: Any
) -> list[Any]:
    """Returns a question with a disfluency from the words of its context."""
    cue = random.choice(CUES).split()
    right = noun_phrases(question)
    spoken = [question[start:stop] for start, stop in right]
    wrong = [context[start:stop] for start, stop in noun_phrases(context)]
    wrong = [phrase for phrase in wrong if phrase not in spoken]
    kind = random.random()
    if not right or not wrong or kind < 0.3:
        start = random.choice(_STARTS).split()
        if wrong and random.happens(0.5):
            start += random.choice(wrong)
        return [*start, *cue, *question]
    start, stop = random.choice(right)
    meant, said = question[start:stop], random.choice(wrong)
    before, after = question[:start], question[stop:]
    # A late correction must tell which phrase it corrects.
    others = [phrase for phrase in spoken if phrase != meant]
    is_clear = _is_human(said) == _is_human(meant) and not any(
        _is_human(phrase) == _is_human(meant) for phrase in others
    )
    if is_clear and kind < 0.6:
        return [*before, *said, *after, *cue, *meant]
    return [*before, *said, *cue, *meant, *after]


def noun_phrases(words: Sequence[str]) -> Tensor:
    """Returns the (start, stop) of phrases from a determiner to a noun."""
    found, start = [], None
    for index, word in enumerate(words):
        if word in _DETERMINERS:
            start = index
        elif word in _noun_kinds() and start is not None:
            found.append((start, index + 1))
            start = None
    return found


def _is_human(phrase):
    return _noun_kinds()[phrase[-1]] == "human"


@functools.cache
def _noun_kinds():
    """Maps each form of a noun to its class."""
    return {
        form: entry.kind
        for noun, entry in NOUNS.items()
        for form in (noun, inflection.english_plural(noun))
    }
