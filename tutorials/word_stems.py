"""Stems: what the inflections of a word, and words made of it, share.

The rule is rough, and errs on one side: it would rather say that two words
belong together than that a word is new.
"""

# Longest first: -iz before -e would leave a part.
_SUFFIXES = sorted(
    "'s s es ies ing ed er or ar est ly ily ably ibly ally al ial ical ic ion "
    "at it iv abl ibl abil ibil able ible ment ness ful less ship ous ious "
    "eous ist ism iz is ity ety anc enc ance ence ancy ency ant ent ary arily "
    "ory an ian ia ium um ur ure y i e a".split(),
    key=len,
    reverse=True,
)
_PREFIXES = sorted(
    "anti auto counter de dis im in inter mis non non- over pre re sub super "
    "trans un under up".split(),
    key=len,
    reverse=True,
)
_VOWELS = frozenset("aeiouy")


def stem(word):
    """Returns what is left when common beginnings and endings are taken off.

    One prefix is taken off where four letters are left, then suffixes, the
    longest first and as often as it goes, where three letters and a vowel are
    left. In the end a double letter becomes a single one.

    Args:
        word: str, not empty.

    Returns:
        Str, lower case. A phrase has the stem of its longest word.

    Examples:
    >>> [stem(w) for w in ("calculate", "calculations", "miscalculated")]
    ['calcul', 'calcul', 'calcul']
    >>> [stem(w) for w in ("run", "running", "happy", "unhappiness")]
    ['run', 'run', 'hap', 'hap']
    """
    found = max(word.lower().split(), key=len)
    for prefix in _PREFIXES:
        rest = found.removeprefix(prefix)
        if rest != found and len(rest) >= 4 and _has_vowel(rest):
            found = rest
            break
    while (shorter := _without_suffix(found)) != found:
        found = shorter
    if len(found) > 2 and found[-1] == found[-2]:
        found = found[:-1]
    return found


def unseen(words, trained):
    """Finds the words none of whose inflections is among those trained on.

    Args:
        words: list of str.
        trained: iterable of str.

    Returns:
        List of int, indices into `words`.
    """
    known = set(map(stem, trained))
    return [i for i, word in enumerate(words) if stem(word) not in known]


def _without_suffix(word):
    for suffix in _SUFFIXES:
        rest = word.removesuffix(suffix)
        if rest != word and len(rest) >= 3 and _has_vowel(rest):
            return rest
    return word


def _has_vowel(text):
    return not _VOWELS.isdisjoint(text)
