"""make_disfluent_questions: questions with a slip of the tongue."""

from typing import NamedTuple

from keras_attn.datasets import sampling
from keras_attn.datasets.phrase_grammar.disfluencies import add_disfluency
from keras_attn.datasets.phrase_grammar.questions import sampled_questions


class DisfluentQuestion(NamedTuple):
    """A question as it is spoken, and as it is meant.

    Args:
        disfluent: str. With a wrong word, a cue and its correction.
        question: str. The intended question.
        context: str. The text that the question is about.

    Examples:
        >>> example = keras_attn.datasets.DisfluentQuestion(
        ...     "who saw the dog no sorry the cat", "who saw the cat",
        ...     "the boy saw the cat . the dog is wet .")
        >>> example.question
        'who saw the cat'
    """

    disfluent: str
    question: str
    context: str


def make_disfluent_questions(
    n: int, *, seed: int = 0, split: str = "train"
) -> list[DisfluentQuestion]:
    """Makes questions in which the speaker corrects a wrong word.

    For sequence-to-sequence models that restore the intended question, most of
    whose words are copied. In the form of Disfl-QA (Gupta et al. 2021,
    https://arxiv.org/abs/2106.04016): the wrong words are from the context, and
    a cue such as "no wait" or "i mean" comes after them. A wrong phrase is
    corrected at once, corrected at the end of the question, or the question is
    restarted.

    Questions and contexts are as those of `make_questions`, with the same rule
    for the splits; disfluent questions have 6 to 17 words.

    Args:
        n: int >= 0. Number of questions.
        seed: int >= 0. Default 0.
        split: "train", "validation" or "test". Default "train".

    Returns:
        List of n distinct `DisfluentQuestion`.

    Raises:
        ValueError: an argument is invalid.

    Examples:
        >>> example = keras_attn.datasets.make_disfluent_questions(2)[1]
        >>> example.disfluent
        'what did his old newspaper no wait the tall friend read'
        >>> example.question
        'what did the tall friend read'
    """
    sampling.check_arguments(n, seed, split)
    return sampling.take_distinct(n, _candidates(seed, split))


def _candidates(seed, split):
    random = sampling.named_random(seed, "disfluencies")
    for drawn in sampled_questions(seed, "disfluent questions", split, 1 / 3):
        if drawn is None:
            yield None
        else:
            words = add_disfluency(random, drawn.question, drawn.context)
            parts = words, drawn.question, drawn.context
            example = DisfluentQuestion(*(" ".join(part) for part in parts))
            yield example, example
