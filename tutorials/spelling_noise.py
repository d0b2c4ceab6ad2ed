"""A model of how people misspell: it turns right words into wrong ones.

Four words in five get one error, the others two. Of what kind an error is, and
how often, follows what lists of real misspellings look like: letters are left
out most of all, vowels are mistaken for each other, neighbours change places.

Examples:
>>> import random
>>> draw = random.Random(1)
>>> [misspell("separate", draw) for _ in range(4)]
['sepaati', 'separaet', 'seperate', 'eparate']
"""

# Probability of two errors instead of one.
TWO_ERRORS = 0.2
# Probability that the first letter may be wrong; people seldom miss it.
FIRST_LETTER = 0.1
# Of each kind of error, how often it is tried.
KINDS = {
    "left out": 0.25,  # a letter: goverment
    "swapped": 0.15,  # two neighbours: freind
    "vowel": 0.14,  # one for another: seperate
    "sound": 0.12,  # spellings of one sound: recieve, independance
    "doubled": 0.09,  # a letter: untill
    "single": 0.06,  # instead of double: accomodate
    "added": 0.12,  # a letter of the word, again: explaination
    "struck": 0.07,  # a neighbour on the keyboard: wprld
}
KEYBOARD = "qwertyuiop", "asdfghjkl", "zxcvbnm"
VOWELS = "aeiou"
# Both ways: what stands for one is written as the other.
SOUNDS = """
ie|ei ance|ence ant|ent able|ible tion|sion cion|tion ph|f c|s c|k s|z er|or
er|ar er|re y|i ou|u ea|ee ai|ei ai|a gh|g wh|w kn|n wr|r qu|kw x|ks ck|k sc|s
dge|ge tch|ch ful|full oo|u ou|ow t|d m|n ious|ous eous|ious ise|ice our|or
ough|off ei|i ie|i u|yu j|g th|t le|el ery|ary
"""
_PAIRS = tuple(
    pair
    for row in SOUNDS.split()
    for pair in (row.split("|"), row.split("|")[::-1])
)


def misspell(word, draw, right=frozenset()):
    """Returns a misspelling of a word.

    Args:
        word: str of at least three letters.
        draw: `random.Random`.
        right: set of str, words that are right and so no misspellings.

    Returns:
        Str, neither the word nor one of `right`; at most two letters
        longer than the word.

    Raises:
        ValueError: the word is too short to be told from others.
    """
    if len(word) < 3:
        raise ValueError(
            f"`word` must have at least three letters. Received: word={word!r}"
        )
    while True:
        wrong = word
        for _ in range(2 if draw.random() < TWO_ERRORS else 1):
            wrong = _with_error(wrong, draw)
        if wrong not in (word, "") and wrong not in right:
            return wrong


def neighbours():
    """Returns for each letter the letters around it on the keyboard.

    Returns:
        Dict of str to str, sorted.

    Examples:
    >>> neighbours()["a"], neighbours()["g"]
    ('qswz', 'bfhtvy')
    """
    places = {
        letter: (row, column + row / 2)
        for row, letters in enumerate(KEYBOARD)
        for column, letter in enumerate(letters)
    }
    return {
        letter: "".join(
            sorted(
                other
                for other, (row, column) in places.items()
                if other != letter
                and abs(row - at[0]) <= 1
                and abs(column - at[1]) <= 1
            )
        )
        for letter, at in places.items()
    }


_NEIGHBOURS = neighbours()


def _with_error(word, draw):
    """Returns the word with one error, of a kind that it can have."""
    first = 0 if draw.random() < FIRST_LETTER else 1
    kinds = dict(KINDS)
    while kinds:
        kind = draw.choices(list(kinds), list(kinds.values()))[0]
        found = _ERRORS[kind](word, first, draw)
        if found is not None:
            return found
        # This word has no place for it.
        del kinds[kind]
    return word


def _left_out(word, first, draw):
    if len(word) < 3:
        return None
    place = draw.randrange(first, len(word))
    return word[:place] + word[place + 1 :]


def _swapped(word, first, draw):
    places = [i for i in range(first, len(word) - 1) if word[i] != word[i + 1]]
    if not places:
        return None
    i = draw.choice(places)
    return word[:i] + word[i + 1] + word[i] + word[i + 2 :]


def _vowel(word, first, draw):
    places = [i for i in range(first, len(word)) if word[i] in VOWELS]
    if not places:
        return None
    i = draw.choice(places)
    return word[:i] + draw.choice(VOWELS.replace(word[i], "")) + word[i + 1 :]


def _sound(word, first, draw):
    found = [
        (i, old, new)
        for old, new in _PAIRS
        for i in _places(word, old)
        if i >= first
    ]
    if not found:
        return None
    i, old, new = draw.choice(found)
    return word[:i] + new + word[i + len(old) :]


def _doubled(word, first, draw):
    i = draw.randrange(first, len(word)) if len(word) > first else 0
    return word[:i] + word[i] + word[i:]


def _single(word, first, draw):
    places = [i for i in range(first, len(word) - 1) if word[i] == word[i + 1]]
    if not places:
        return None
    i = draw.choice(places)
    return word[:i] + word[i + 1 :]


def _added(word, first, draw):
    i = draw.randrange(first, len(word) + 1)
    return word[:i] + draw.choice(word[max(0, i - 3) : i + 3]) + word[i:]


def _struck(word, first, draw):
    places = [i for i in range(first, len(word)) if word[i] in _NEIGHBOURS]
    if not places:
        return None
    i = draw.choice(places)
    return word[:i] + draw.choice(_NEIGHBOURS[word[i]]) + word[i + 1 :]


def _places(word, part):
    """Yields where a part begins in a word."""
    i = word.find(part)
    while i >= 0:
        yield i
        i = word.find(part, i + 1)


_ERRORS = {
    "left out": _left_out,
    "swapped": _swapped,
    "vowel": _vowel,
    "sound": _sound,
    "doubled": _doubled,
    "single": _single,
    "added": _added,
    "struck": _struck,
}
