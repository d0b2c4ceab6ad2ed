"""A model of spelling errors."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from keras_attn.datasets.stable_random import StableRandom


# Relative frequency of each kind of error. Integers, because the sum of floats
# depends on the version of Python.
KINDS = {
    "omission": 25,  # of a letter: goverment
    "transposition": 15,  # of two neighbors: freind
    "vowel": 14,  # another vowel: seperate
    "sound": 12,  # another spelling of a sound: independance
    "doubling": 9,  # of a letter: untill
    "single": 6,  # one letter of a double one: accomodate
    "addition": 12,  # of a letter of the word: explaination
    "keyboard": 7,  # a neighbor on the keyboard: wprld
}
_TWO_ERRORS, _FIRST_LETTER = 0.2, 0.1
_VOWELS = "aeiou"
# Either side is written for the other.
_SOUNDS = """
ie|ei ance|ence ant|ent able|ible tion|sion cion|tion ph|f c|s c|k s|z er|or
er|ar er|re y|i ou|u ea|ee ai|ei ai|a gh|g wh|w kn|n wr|r qu|kw x|ks ck|k sc|s
dge|ge tch|ch ful|full oo|u ou|ow t|d m|n ious|ous eous|ious ise|ice our|or
ough|off ei|i ie|i u|yu j|g th|t le|el ery|ary
"""
_PAIRS = tuple(
    pair
    for row in _SOUNDS.split()
    for pair in (row.split("|"), row.split("|")[::-1])
)
_KEYBOARD = "qwertyuiop", "asdfghjkl", "zxcvbnm"


def add_errors(word: str, random: "StableRandom") -> str:
    """Returns a word with one spelling error, or with two.

    Args:
        word: str of at least three characters.
        random: `StableRandom`.

    Returns:
        str, at most two characters longer than `word`. Two errors may cancel
        out.

    Examples:
        >>> from keras_attn.datasets.spelling.noise import add_errors
        >>> from keras_attn.datasets.stable_random import StableRandom
        >>> random = StableRandom(0)
        >>> [add_errors("separate", random) for _ in range(4)]
        ['spearata', 'sepiarate', 'separatte', 'seperate']
    """
    for _ in range(2 if random.happens(_TWO_ERRORS) else 1):
        word = _with_error(word, random)
    return word


def _with_error(word, random):
    first = 0 if random.happens(_FIRST_LETTER) else 1
    kinds = dict(KINDS)
    while kinds:
        kind = random.choice(list(kinds), list(kinds.values()))
        found = _ERRORS[kind](word, first, random)
        if found is not None:
            return found
        # The word cannot have an error of this kind.
        del kinds[kind]
    return word


def _omission(word, first, random):
    if len(word) < 3:
        return None
    i = first + random.integer(len(word) - first)
    return word[:i] + word[i + 1 :]


def _transposition(word, first, random):
    indices = [i for i in range(first, len(word) - 1) if word[i] != word[i + 1]]
    if not indices:
        return None
    i = random.choice(indices)
    return word[:i] + word[i + 1] + word[i] + word[i + 2 :]


def _vowel(word, first, random):
    indices = [i for i in range(first, len(word)) if word[i] in _VOWELS]
    if not indices:
        return None
    i = random.choice(indices)
    other = random.choice(_VOWELS.replace(word[i], ""))
    return word[:i] + other + word[i + 1 :]


def _sound(word, first, random):
    found = [
        (i, old, new)
        for old, new in _PAIRS
        for i in range(first, len(word))
        if word.startswith(old, i)
    ]
    if not found:
        return None
    i, old, new = random.choice(found)
    return word[:i] + new + word[i + len(old) :]


def _doubling(word, first, random):
    i = first + random.integer(len(word) - first)
    return word[:i] + word[i] + word[i:]


def _single(word, first, random):
    indices = [i for i in range(first, len(word) - 1) if word[i] == word[i + 1]]
    if not indices:
        return None
    i = random.choice(indices)
    return word[:i] + word[i + 1 :]


def _addition(word, first, random):
    i = first + random.integer(len(word) + 1 - first)
    return word[:i] + random.choice(word[max(0, i - 3) : i + 3]) + word[i:]


def _keyboard(word, first, random):
    indices = [i for i in range(first, len(word)) if word[i] in _NEIGHBORS]
    if not indices:
        return None
    i = random.choice(indices)
    return word[:i] + random.choice(_NEIGHBORS[word[i]]) + word[i + 1 :]


_ERRORS = {
    "omission": _omission,
    "transposition": _transposition,
    "vowel": _vowel,
    "sound": _sound,
    "doubling": _doubling,
    "single": _single,
    "addition": _addition,
    "keyboard": _keyboard,
}


def _neighbors():
    """Returns a dict of each letter to the sorted letters around its key."""
    keys = {
        letter: (row, column + row / 2)
        for row, letters in enumerate(_KEYBOARD)
        for column, letter in enumerate(letters)
    }
    return {
        letter: "".join(
            sorted(
                other
                for other, (row, column) in keys.items()
                if other != letter
                and abs(row - at[0]) <= 1
                and abs(column - at[1]) <= 1
            )
        )
        for letter, at in keys.items()
    }


_NEIGHBORS = _neighbors()
