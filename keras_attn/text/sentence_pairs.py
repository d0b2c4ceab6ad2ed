"""sentence_pairs: BERT's next sentence prediction examples."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from keras_attn import checks
from keras_attn.text import arguments


class SentencePair(NamedTuple):
    """Two text segments, and whether the second follows the first.

    Args:
        first: list of ids.
        second: list of ids.
        is_next: bool. Whether the second follows the first in its document.

    Examples:
        >>> keras_attn.text.SentencePair([5], [6], True).is_next
        True
    """

    first: list[int]
    second: list[int]
    is_next: bool


def sentence_pairs(
    documents: Sequence[Any],
    length: int | None = None,
    seed: int | tuple[int, ...] | np.random.Generator | None = None,
) -> list[SentencePair]:
    """Makes sentence pairs for BERT's next sentence prediction.

    With probability 0.5 the second sentence follows the first; otherwise it is
    drawn from another document (Devlin et al. 2019, sec. 3.1,
    https://arxiv.org/abs/1810.04805). Every sentence of a document but the last
    is the first of a pair, in order. With a `length`, sentences are joined,
    first and second each from one document, until they fill it (ibid., A.2):
    then a document gives fewer and longer pairs.

    Args:
        documents: list of documents, each a list of sentences, each a list of
            ids. Empty documents and sentences are skipped.
        length: int >= 2. Maximum ids per pair. Longer pairs are truncated at
            the end, the longer side first. Default None: one sentence each.
        seed: int >= 0, tuple of them, or `numpy.random.Generator`. None: a
            different draw each time.

    Returns:
        List of `SentencePair`.

    Raises:
        ValueError: fewer than two documents, none with two sentences, or a
            length of less than two.

    Examples:
        >>> pairs = keras_attn.text.sentence_pairs(
        ...     [[[5], [6], [7]], [[8], [9]]], seed=0)
        >>> [pair.first for pair in pairs]
        [[5], [6], [8]]
    """
    if length is not None:
        checks.positive_int("length", length, most=None)
        if length < 2:
            raise ValueError(
                "`length` must be at least 2, one id per side. "
                f"Received: length={length}"
            )
    documents = _sentences(documents)
    if len(documents) < 2 or max(map(len, documents)) < 2:
        raise ValueError(
            "`documents` must contain at least two documents, one of them with "
            f"two sentences. Received: {len(documents)} non-empty documents"
        )
    random = arguments.random_generator("seed", seed)
    pairs = []
    for number, document in enumerate(documents):
        start = 0
        while start < len(document) - 1:
            pair, start = _pair(documents, number, start, length, random)
            pairs.append(pair)
    return pairs


def _sentences(documents):
    """Returns the documents without empty sentences, or raises ValueError."""
    name = "documents"
    expected = "a list of documents, each a list of sentences, lists of ids"
    found = []
    for document in arguments.text_list(name, documents, expected):
        rows = [
            arguments.id_list(name, sentence, 2**31)
            for sentence in arguments.text_list(name, document, expected)
        ]
        rows = [row for row in rows if row]
        if rows:
            found.append(rows)
    return found


def _pair(documents, number, start, length, random):
    """Returns a pair, and where the next one starts."""
    document = documents[number]
    end = start + 1
    if length is not None:
        # Up to `length` ids, leaving at least one sentence for the second.
        total = len(document[start])
        while end < len(document) and total < length:
            total += len(document[end])
            end += 1
        end = start + 1 + random.integers(max(1, end - start - 1))
    first = _joined(document[start:end])
    is_next = bool(random.random() < 0.5)
    if is_next:
        source, begin = document, end
    else:
        other = random.integers(len(documents) - 1)
        source = documents[other + (other >= number)]
        begin = random.integers(len(source))
    stop = begin + 1
    if length is not None:
        while stop < len(source) and (
            len(first) + sum(map(len, source[begin:stop])) < length
        ):
            stop += 1
    second = _joined(source[begin:stop])
    if length is not None:
        first, second = cut_pair(first, second, length)
    # If the second is from another document, the next pair starts at `end`.
    used = is_next and length is not None
    return SentencePair(first, second, is_next), stop if used else end


def cut_pair(
    first: Sequence[Any], second: Sequence[Any], length: int
) -> tuple[Any, Any]:
    """Truncates two lists of ids at the end, the longer one first.

    Args:
        first: list of ids.
        second: list of ids.
        length: int. Maximum ids of both together.

    Returns:
        The two lists.

    Examples:
        >>> from keras_attn.text.sentence_pairs import cut_pair
        >>> cut_pair([1, 2, 3, 4], [5, 6], 4)
        ([1, 2], [5, 6])
    """
    over = max(0, len(first) + len(second) - length)
    # First the longer one down to the other, then both alternately.
    difference = len(first) - len(second)
    from_first = min(over, max(0, difference))
    from_second = min(over, max(0, -difference))
    rest = over - from_first - from_second
    from_first += rest // 2
    from_second += rest - rest // 2
    return first[: len(first) - from_first], second[: len(second) - from_second]


def _joined(sentences):
    return [token for sentence in sentences for token in sentence]
