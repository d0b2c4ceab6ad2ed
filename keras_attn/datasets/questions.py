"""make_questions: questions about short texts, some without an answer."""

from keras_attn import checks
from keras_attn.datasets import sampling
from keras_attn.datasets.phrase_grammar.questions import sampled_questions
from keras_attn.datasets.question import Answer, Question


def make_questions(
    n: int,
    *,
    seed: int = 0,
    split: str = "train",
    unanswerable_rate: float = 1 / 3,
) -> list[Question]:
    """Makes questions about short texts, answered by a span of the text.

    For extractive question answering, in the form of SQuAD 2.0 (Rajpurkar et
    al. 2018, https://arxiv.org/abs/1806.03822): an answer is a span of the
    context, and some questions have none. The context has two to four sentences
    that share their words, so finding the words of the question in the context
    is not enough, and questions without an answer use the words of their
    context too.

    Contexts have 12 to 48 words, questions 4 to 9, in lower case; words and
    full stops are separated by spaces. Questions begin with who, what, where or
    which and have no question mark. Millions of contexts are distinct. There
    are about 300 different words, and up to three questions about a context.

    In the test split, each question is about a sentence in which an adjective
    describes a noun ("the large cat", "the cat is large") with which it is in
    no context or question of the other splits. 5 % of the other contexts, by
    their words, are for validation. No context is in two splits.

    Args:
        n: int >= 0. Number of questions.
        seed: int >= 0. Default 0.
        split: "train", "validation" or "test". Default "train".
        unanswerable_rate: float in [0, 1). Probability that a question has no
            answer. Default 1/3, as in SQuAD 2.0.

    Returns:
        List of n distinct `Question`, each with one `Answer` or none. Questions
        about the same context follow each other.

    Raises:
        ValueError: an argument is invalid.

    Examples:
        >>> questions = keras_attn.datasets.make_questions(2)
        >>> for sentence in questions[0].context.split(" . "):
        ...     print(sentence)
        the tall kings called the kind grandmother in the boring forest
        my teacher called the tall aunt .
        >>> for question in questions:
        ...     print(question.question, question.answers)
        where did the tall aunt call the kind grandmother ()
        who called the tall aunt (Answer(text='my teacher', start=66),)
    """
    sampling.check_arguments(n, seed, split)
    checks.fraction("unanswerable_rate", unanswerable_rate)
    return sampling.take_distinct(
        n, _candidates(seed, split, unanswerable_rate)
    )


def _candidates(seed, split, unanswerable_rate):
    for drawn in sampled_questions(seed, "questions", split, unanswerable_rate):
        if drawn is None:
            yield None
            continue
        question, context = " ".join(drawn.question), " ".join(drawn.context)
        answers = ()
        if drawn.span is not None:
            start, stop = drawn.span
            answer = " ".join(drawn.context[start:stop])
            offset = len("".join(word + " " for word in drawn.context[:start]))
            answers = (Answer(answer, offset),)
        yield (question, context), Question(question, context, answers)
