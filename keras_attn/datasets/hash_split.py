"""split_by_hash: a split that depends on the content of each record."""

import hashlib
from collections.abc import Callable, Iterable
from typing import Any

from keras_attn import checks


def split_by_hash(
    records: Iterable[Any],
    key: Callable[..., Any] | None = None,
    *,
    parts: int = 20,
) -> tuple[list[Any], list[Any], list[Any]]:
    """Splits records into training, validation and test by a hash of a text.

    Records of the same text are in the same part: all translations of a
    sentence, all misspellings of a word, all questions about a paragraph. A
    random split of the lines would put them on both sides. The part depends
    on the text alone, so it stays the same when a data set grows or its order
    changes. With h = sha256(text) mod `parts`, the test set has h = 0, the
    validation set h = 1, and the training set the rest.

    Args:
        records: iterable of records.
        key: callable that returns the text of a record: a str, or a list of
            str that are joined by spaces. Default None: the first field of a
            record that is a tuple, else the record.
        parts: int >= 3. One part in so many is for validation, and one for the
            test. Default 20.

    Returns:
        Tuple `(train, validation, test)` of lists, in the order of `records`.

    Raises:
        ValueError: an argument is invalid, or a text is not a str.

    Examples:
        >>> pairs = [
        ...     (f"sentence {n}", f"translation {m}")
        ...     for n in range(500) for m in range(2)]
        >>> train, validation, test = keras_attn.datasets.split_by_hash(pairs)
        >>> len(train), len(validation), len(test)
        (892, 58, 50)
        >>> sources = {source for source, _ in train}
        >>> any(source in sources for source, _ in test)
        False
    """
    checks.integer("parts", parts, 3)
    if key is not None and not callable(key):
        raise ValueError(
            "`key` must be a callable or None. "
            f"Received: key={checks.shown(key)}"
        )
    records = checks.iterable("records", records, "a list of records")
    train, validation, test = [], [], []
    for record in records:
        text = _text(record, key)
        digest = hashlib.sha256(text.encode("utf-8", "surrogatepass"))
        remainder = int(digest.hexdigest(), 16) % parts
        {0: test, 1: validation}.get(remainder, train).append(record)
    return train, validation, test


def _text(record, key):
    if key is not None:
        text = key(record)
    elif isinstance(record, tuple) and record:
        text = record[0]
    else:
        text = record
    if isinstance(text, (list, tuple)) and all(
        isinstance(word, str) for word in text
    ):
        text = " ".join(text)
    if not isinstance(text, str):
        raise ValueError(
            "`key` must return a str or a list of str for each record. "
            f"Received: {checks.shown(text)}"
        )
    return text
