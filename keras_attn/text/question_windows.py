"""question_windows: questions about texts, as rows of a model."""

import functools
import re
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from keras_attn import checks
from keras_attn.text import arguments

_WORD = re.compile(r"\d+|[^\W\d_]+|[^\w\s]|_")


class QuestionWindow(NamedTuple):
    """A question and a part of its context, as token ids.

    Args:
        index: int. Index of the question.
        token_ids: list of int (T,). The question, the end token, and a window
            of the context.
        segment_ids: list of int (T,). 0: the question and the end token; 1: the
            context; 2: words of the context that are also in the question.
        offsets: list of (int, int) (T,). For each token of the context, the
            first character of its word in the context, and the end of the word.
            (0, 0) in the question.
        span: (int, int). Indices in `token_ids` of the first and the last token
            of the answer; None if no answer is in the window.

    Examples:
        >>> keras_attn.text.QuestionWindow(0, [7, 2], [0, 0], [], None).index
        0
    """

    index: int
    token_ids: list[int]
    segment_ids: list[int]
    offsets: list[tuple[int, int]]
    span: Any


def question_windows(
    questions: Sequence[Any],
    tokenizer: Any,
    max_length: int = 384,
    lowercase: bool = True,
) -> list[QuestionWindow]:
    """Makes rows of a `SpanExtractor`: each a question and a text.

    A row has at most `max_length` tokens: the question, of which at most a half
    of that is kept, an end token, and the context. If the context is longer, it
    is divided into windows, each of which overlaps the next one by a half
    (Devlin et al. 2019, https://arxiv.org/abs/1810.04805, in whose code the
    distance of two windows is `doc_stride`). The answer is in those windows
    that contain all of it.

    The tokenizer encodes each word, number and punctuation mark on its own, so
    that a span of tokens is a span of whole words. `segment_ids` mark the
    words that question and context share, a feature of Chen et al. 2017, sec.
    3.2, https://arxiv.org/abs/1704.00051.

    Args:
        questions: list of `datasets.Question`, or of other tuples (question,
            context, answers), where `answers` are tuples (text, start) and the
            first one counts.
        tokenizer: `SubwordTokenizer`, or another object with a method `encode`
            and an attribute `end_id`.
        max_length: int >= 4. Tokens of a row. Default 384, as in BERT's code.
        lowercase: bool. Whether words are encoded in lower case. Default True.

    Returns:
        List of `QuestionWindow`, at least one for each question, in order.

    Raises:
        ValueError: an argument has another type or value.

    Examples:
        >>> question = ("Where is Ann?", "Ann sits in Oslo.", [("Oslo", 12)])
        >>> class Tokenizer:
        ...     end_id = 1
        ...     def encode(self, words):
        ...         return [[len(word)] for word in words]
        >>> window, = keras_attn.text.question_windows([question], Tokenizer())
        >>> window.token_ids
        [5, 2, 3, 1, 1, 3, 4, 2, 4, 1]
        >>> window.segment_ids
        [0, 0, 0, 0, 0, 2, 1, 1, 1, 1]
        >>> first, last = window.span
        >>> question[1][window.offsets[first][0] : window.offsets[last][1]]
        'Oslo'
    """
    is_class = isinstance(tokenizer, type)
    names = "encode", "end_id"
    if is_class or not all(hasattr(tokenizer, name) for name in names):
        raise ValueError(
            "`tokenizer` must be a tokenizer with `encode` and `end_id`. "
            f"Received: tokenizer of type {type(tokenizer).__name__}"
        )
    checks.integer("max_length", max_length, 4)
    checks.boolean("lowercase", lowercase)

    @functools.lru_cache
    def tokens_of(text):
        matches = [*_WORD.finditer(text)]
        words = [match[0] for match in matches]
        words = [word.lower() for word in words] if lowercase else words
        rows = tokenizer.encode(words) if words else []
        return [
            (token, word, match.span())
            for match, word, row in zip(matches, words, rows, strict=True)
            for token in row
        ]

    windows = []
    for index, (question, context, answers) in enumerate(_checked(questions)):
        question = tokens_of(question)[: max_length // 2]
        words = {word for _, word, _ in question}
        context, start = tokens_of(context), len(question) + 1
        size = max_length - start
        answer = _covering(context, *answers[0]) if answers else []
        step = max(1, size // 2)
        for first in range(0, max(1, len(context) - size + step), step):
            part = context[first : first + size]
            span = None
            if answer and first <= answer[0] and answer[-1] < first + size:
                span = tuple(i - first + start for i in (answer[0], answer[-1]))
            window = QuestionWindow(
                index,
                [*(t for t, *_ in question), tokenizer.end_id],
                [0] * start + [1 + (word in words) for _, word, _ in part],
                [(0, 0)] * start + [offsets for *_, offsets in part],
                span,
            )
            window.token_ids.extend(token for token, *_ in part)
            windows.append(window)
    return windows


def pad_windows(
    windows: Sequence[Any], length: int | None = None, pad_id: int = 0
) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Makes a batch of `question_windows` for a `SpanExtractor`.

    Args:
        windows: list of B `QuestionWindow`.
        length: int >= 1. T, at least that of the longest row. Default None: as
            long as that.
        pad_id: int >= 0. Id of padding tokens. Default 0.

    Returns:
        Tuple `(inputs, labels)`. `inputs` is a dict of "token_ids" int32
        (B, T), "segment_ids" int32 (B, T), and "answerable" bool (B, T), True
        in the context. `labels` are int32 (B, 2), the positions of the first
        and the last token of the answer, counted from 1; 0 if there is none.

    Raises:
        ValueError: an argument has another type or value.

    Examples:
        >>> from keras_attn.text import QuestionWindow, pad_windows
        >>> window = QuestionWindow(
        ...     0, [7, 1, 8], [0, 0, 1], [(0, 0), (0, 0), (0, 4)], (2, 2))
        >>> inputs, labels = pad_windows([window], length=4)
        >>> inputs["token_ids"].tolist(), labels.tolist()
        ([[7, 1, 8, 0]], [[3, 3]])
    """
    expected = "a list of `QuestionWindow`"
    windows = arguments.text_list("windows", windows, expected)
    for window in windows:
        checks.instance("windows", window, QuestionWindow, expected)
    longest = max((len(window.token_ids) for window in windows), default=1)
    length = longest if length is None else length
    checks.integer("length", length, longest, arguments.LONGEST_ROW)
    arguments.batch_shape(length, max(1, len(windows)))
    arguments.one_id("pad_id", pad_id)
    token_ids = np.full((len(windows), length), pad_id, "int32")
    segment_ids = np.zeros_like(token_ids)
    labels = np.zeros((len(windows), 2), "int32")
    for i, window in enumerate(windows):
        token_ids[i, : len(window.token_ids)] = window.token_ids
        segment_ids[i, : len(window.token_ids)] = window.segment_ids
        if window.span:
            labels[i] = np.add(window.span, 1)
    inputs = {"token_ids": token_ids, "segment_ids": segment_ids}
    return inputs | {"answerable": segment_ids > 0}, labels


def _covering(context, answer, start):
    """Returns the indices of the tokens of an answer."""
    end = start + len(answer)
    return [
        i
        for i, (_, _, (begin, stop)) in enumerate(context)
        if begin < end and stop > start
    ]


def _checked(questions):
    """Yields (question, context, answers), or raises ValueError."""
    expected = "a list of tuples (question, context, answers)"
    for item in arguments.text_list("questions", questions, expected):
        try:
            question, context, answers = item
            arguments.checked_text("questions", question, expected)
            arguments.checked_text("questions", context, expected)
            answers = [(text, start) for text, start in answers]
            for text, start in answers:
                checks.string("questions", text)
                checks.integer("questions", start, 0)
        except (TypeError, ValueError) as error:
            raise ValueError(
                f"`questions` must be {expected}. "
                f"Received: an item {checks.shown(item)}"
            ) from error
        yield question, context, answers
