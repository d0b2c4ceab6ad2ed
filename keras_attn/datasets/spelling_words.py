"""spelling_words: common English words, in families that are held out."""

import functools

from keras_attn import checks
from keras_attn.datasets.content_split import SPLITS, split_of
from keras_attn.datasets.spelling.families import families


def spelling_words(split: str = "train") -> list[str]:
    """Returns common English words, in all their forms.

    The words of `make_misspellings`: 4,817 words in lower case, of 1 to 18
    letters. Words that share a form or a stem, such as "write", "wrote" and
    "writer", are a family, and a family is held out as a whole (see
    `word_stem`): no form of a held-out word is in the training split. Of the
    1,641 families, about 1 in 20 is held out for the test split and 1 in 20 for
    the validation split, by a hash of its first word in the alphabet.

    Args:
        split: "train" (4,396 words), "validation" (185) or "test" (236).
            Default "train".

    Returns:
        Sorted list of str.

    Raises:
        ValueError: `split` is another value.

    Examples:
        >>> words = keras_attn.datasets.spelling_words()
        >>> len(words), words[:4]
        (4396, ['a', 'about', 'above', 'abrupt'])
    """
    checks.choice("split", split, SPLITS)
    return list(_splits()[split])


@functools.cache
def _splits():
    found = {split: [] for split in SPLITS}
    for family in families():
        found[split_of(family[0])].extend(family)
    return {split: sorted(words) for split, words in found.items()}
