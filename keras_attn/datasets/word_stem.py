"""word_stem: what the forms of an English word have in common."""

from keras_attn import checks

# Longest first: after -e, -ize could not be removed.
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


def word_stem(word: str) -> str:
    """Returns an approximate stem, shared by all forms of an English word.

    For splits that hold out whole families of words: a model that has read
    "calculate" in training should not be tested on "calculations". The rule is
    rough. It prefers to give unrelated words the same stem ("refer" and
    "prefer") over giving related ones different stems. Irregular forms such as
    "wrote" have stems of their own.

    One prefix is removed if four letters remain. Then suffixes are removed, the
    longest first, as long as three letters with a vowel remain. A double letter
    at the end becomes single.

    Args:
        word: str, not blank. Of several words, the longest counts.

    Returns:
        str, in lower case.

    Raises:
        ValueError: `word` is not a str, or is blank.

    Examples:
        >>> stem = keras_attn.datasets.word_stem
        >>> stem("calculate"), stem("calculations"), stem("miscalculated")
        ('calcul', 'calcul', 'calcul')
        >>> words = [keras_attn.datasets.Misspelling("hapily", "happily")]
        >>> train, validation, test = keras_attn.datasets.split_by_hash(
        ...     words, key=lambda word: stem(word.right))
    """
    parts = checks.string("word", word).lower().split()
    if not parts:
        raise ValueError(
            f"`word` must not be blank. Received: word={checks.shown(word)}"
        )
    stem = max(parts, key=len)
    for prefix in _PREFIXES:
        rest = stem.removeprefix(prefix)
        if rest != stem and len(rest) >= 4 and _has_vowel(rest):
            stem = rest
            break
    while (shorter := _without_suffix(stem)) != stem:
        stem = shorter
    if len(stem) > 2 and stem[-1] == stem[-2]:
        stem = stem[:-1]
    return stem


def _without_suffix(word):
    for suffix in _SUFFIXES:
        rest = word.removesuffix(suffix)
        if rest != word and len(rest) >= 3 and _has_vowel(rest):
            return rest
    return word


def _has_vowel(text):
    return not _VOWELS.isdisjoint(text)
