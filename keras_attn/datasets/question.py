"""Question and Answer: a question about a text and its answers."""

from typing import NamedTuple


class Answer(NamedTuple):
    """A span of the context that answers a question.

    Args:
        text: str. The answer, `context[start : start + len(text)]`.
        start: int. Index of its first character in the context.

    Examples:
        >>> keras_attn.datasets.Answer("the cat", 0).text
        'the cat'
    """

    text: str
    start: int


class Question(NamedTuple):
    """A question about a text, as in SQuAD.

    Args:
        question: str.
        context: str. The text that the question is about.
        answers: tuple of `Answer`. Several are alternatives; it is empty if the
            context does not answer the question.

    Examples:
        >>> from keras_attn.datasets import Answer, Question
        >>> question = Question(
        ...     "where is the cat", "the cat is near the door .",
        ...     (Answer("near the door", 11),))
        >>> text, start = question.answers[0]
        >>> question.context[start : start + len(text)]
        'near the door'
    """

    question: str
    context: str
    answers: "tuple[Answer, ...]"
