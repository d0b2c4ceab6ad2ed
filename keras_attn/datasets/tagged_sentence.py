"""TaggedSentence: words and the tag of each."""

from typing import NamedTuple


class TaggedSentence(NamedTuple):
    """A sentence with a tag for each word.

    Args:
        words: tuple of str.
        tags: tuple of str, one per word: parts of speech such as "NOUN", or
            BIO tags of spans such as "B-person".

    Examples:
        >>> sentence = keras_attn.datasets.TaggedSentence(
        ...     ("she", "sings"), ("PRON", "VERB"))
        >>> sentence.tags
        ('PRON', 'VERB')
    """

    words: tuple[str, ...]
    tags: tuple[str, ...]
