"""The labels of words, on the first piece of each."""

import numpy as np

from keras_attn import checks

_NONE = -1


def align_labels_with_tokens(words, labels, length=None):
    """Lays the labels of words on pieces of words, for a `TokenClassifier`.

    The first piece of a word has its label; the others, and what is no word,
    have -1, which `SequenceCrossentropy(pad_id=-1)` passes over (Devlin et al.
    2019, sec. 5.3, https://arxiv.org/abs/1810.04805). Whoever decodes takes the
    answers at the same places: where this is not -1.

    Args:
        words: B rows of int: for each piece the number of its word in the row,
            from 0, or -1 (or None) for `[CLS]`, `[SEP]` and padding.
        labels: B rows of int >= 0, one a word.
        length: int. T, to which rows are filled up with -1; default: the
            longest.

    Returns:
        NumPy int32 (B, T).

    Raises:
        ValueError: different numbers of rows, a word without a label, or a row
            longer than `length`.

    Examples:
        >>> keras_attn.models.align_labels_with_tokens(
        ...     [[-1, 0, 1, 1, -1]], [[5, 7]])
        array([[-1,  5,  7, -1, -1]], dtype=int32)
    """
    if len(words) != len(labels) or not len(words):
        raise ValueError(
            "`words` and `labels` must have as many rows, at least one. "
            f"Received: {len(words)} and {len(labels)}"
        )
    longest = max(map(len, words))
    if length is None:
        length = longest
    checks.positive_int("length", length)
    if longest > length:
        raise ValueError(
            f"`words` must not be longer than length={length}. "
            f"Received: a row of {longest} pieces"
        )
    laid = np.full((len(words), length), _NONE, "int32")
    for row, numbers, known in zip(laid, words, labels, strict=True):
        before = _NONE
        for place, number in enumerate(numbers):
            number = _NONE if number is None else int(number)
            if number >= len(known):
                raise ValueError(
                    "`labels` must have one for each word. "
                    f"Received: {len(known)} labels, and word {number}"
                )
            if number not in (_NONE, before):
                row[place] = known[number]
            before = number
    return laid
