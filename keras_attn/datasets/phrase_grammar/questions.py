"""Questions about passages, with and without an answer.

Questions without an answer are in the words of the passage too: the same verb
with another subject, or the same person with another object.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

from keras_attn.datasets import sampling
from keras_attn.datasets.phrase_grammar.facts import (
    answering_facts,
    question,
    roles,
    sentence,
)
from keras_attn.datasets.phrase_grammar.passages import (
    passage,
    split_of,
    text,
    variations,
)
from keras_attn.typing import TensorLike

# Per passage.
_MOST_QUESTIONS = 3


class PassageQuestion(NamedTuple):
    """A question in words, and the span (start, stop) of its answer.

    The span indexes the words of the context; it is None without an answer.
    """

    question: Any
    context: Any
    span: Any


def sampled_questions(
    seed: int, name: str, split: str, unanswerable_rate: float
) -> Iterator[Any]:
    """Yields `PassageQuestion` endlessly, or None for another split."""
    random = sampling.named_random(seed, name)
    has_answer = not random.happens(unanswerable_rate)
    while True:
        facts = passage(random)
        if split_of(facts) != split:
            yield None
            continue
        indices = range(len(facts))
        if split == "test":
            indices = [index for index in indices if facts[index].is_held_out]
        pools = {
            True: answerable(facts, indices),
            False: unanswerable(facts, indices),
        }
        for pool in pools.values():
            random.shuffle(pool)
        for _ in range(_MOST_QUESTIONS):
            if not pools[has_answer]:
                yield None
                break
            yield pools[has_answer].pop()
            has_answer = not random.happens(unanswerable_rate)


def answerable(facts: dict[str, Any], indices: TensorLike) -> Any:
    """Returns all questions about some facts that have only one answer."""
    context, found, start = text(facts).split(), [], 0
    for index, fact in enumerate(facts):
        words, spans = sentence(fact)
        for role in roles(fact) if index in indices else ():
            if role in spans and answering_facts(facts, fact, role) == [index]:
                span = tuple(start + bound for bound in spans[role])
                found.append(
                    PassageQuestion(question(fact, role), context, span)
                )
        start += len(words) + 1
    return found


def unanswerable(facts: dict[str, Any], indices: TensorLike) -> list[Any]:
    """Returns questions that a passage does not answer.

    They are about some of its facts, or variations of them.
    """
    context = text(facts).split()
    # A dict is an ordered set.
    questions = {
        tuple(question(other, role)): None
        for index in indices
        for other in (facts[index], *variations(facts, facts[index]))
        for role in roles(other)
        if not answering_facts(facts, other, role)
    }
    return [PassageQuestion(list(words), context, None) for words in questions]
