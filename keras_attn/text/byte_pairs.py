"""Byte pairs: how GPT-2 cuts a text, and how its pieces are joined."""

import collections
import functools
import itertools
import re
import sys
import unicodedata

# What regular expressions call white space in Unicode; Python's `\s` has four
# control characters more.
_SPACES = r"\t-\r \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"


@functools.cache
def byte_letters():
    """Returns the letter that stands for each byte, a list of 256.

    Printable ones stand for themselves, the others for letters from 256 on, so
    that no piece holds a space or a control character.
    """
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = (b for b in range(256) if b not in printable)
    letters = {b: chr(b) for b in printable}
    letters |= {b: chr(256 + n) for n, b in enumerate(others)}
    return [letters[byte] for byte in range(256)]


@functools.cache
def _words():
    """Returns the pattern by which GPT-2 cuts a text into words."""
    letters, numbers = (_class(kind) for kind in "LN")
    return re.compile(
        r"'(?:s|t|re|ve|m|ll|d)"
        rf"| ?[{letters}]+| ?[{numbers}]+"
        rf"| ?[^{_SPACES}{letters}{numbers}]+"
        rf"|[{_SPACES}]+(?![^{_SPACES}])|[{_SPACES}]+"
    )


def _class(kind):
    """Returns the characters of a Unicode category as ranges of a set."""
    ranges, start = [], None
    for code in range(sys.maxunicode + 2):
        # One more than there is, to close the last range.
        inside = code <= sys.maxunicode and (
            unicodedata.category(chr(code))[0] == kind
        )
        if inside and start is None:
            start = code
        elif not inside and start is not None:
            ranges.append(rf"\U{start:08x}-\U{code - 1:08x}")
            start = None
    return "".join(ranges)


def words(text):
    """Cuts a text into words, each a str of letters that stand for bytes.

    Args:
        text: str.

    Returns:
        List of str.

    Examples:
        >>> from keras_attn.text.byte_pairs import words
        >>> words("it's 12 o'clock")
        ['it', "'s", 'Ġ12', 'Ġo', "'", 'clock']
    """
    letters = byte_letters()
    return [
        # Half of a surrogate pair has no bytes of its own.
        "".join(letters[b] for b in word.encode("utf-8", "surrogatepass"))
        for word in _words().findall(text)
    ]


def joined(word, ranks):
    """Joins the letters of a word, always the pair that was learned first.

    Args:
        word: str.
        ranks: {(piece, piece): int}, less is earlier.

    Returns:
        List of str, the pieces.

    Examples:
        >>> from keras_attn.text.byte_pairs import joined
        >>> joined("lower", {("l", "o"): 0, ("e", "r"): 1, ("lo", "w"): 2})
        ['low', 'er']
    """
    pieces = list(word)
    while len(pieces) > 1:
        pairs = itertools.pairwise(pieces)
        rank, pair = min((ranks.get(p, len(ranks)), p) for p in pairs)
        if rank == len(ranks):
            break
        pieces = _replaced(pieces, pair)
    return pieces


def learn_merges(counts, number):
    """Learns which pairs to join.

    Again and again, the two neighbours that stand together most often; of
    several that do, the first in the order of their letters (Sennrich et al.
    2016, https://arxiv.org/abs/1508.07909).

    Args:
        counts: {word: how often it stands in the text}.
        number: int. How many pairs to learn, at most: it ends where no pair
            stands together twice.

    Returns:
        List of pairs of str.

    Examples:
        >>> from keras_attn.text.byte_pairs import learn_merges
        >>> learn_merges({"low": 3, "lot": 2}, 2)
        [('l', 'o'), ('lo', 'w')]
    """
    pieces = {word: list(word) for word in counts}
    pairs, places = collections.Counter(), collections.defaultdict(set)
    for word in counts:
        _count(pieces[word], counts[word], word, pairs, places)
    merges = []
    while len(merges) < number and pairs:
        pair = min(pairs, key=lambda pair: (-pairs[pair], pair))
        if pairs[pair] < 2:
            break
        merges.append(pair)
        for word in sorted(places[pair]):
            _count(pieces[word], -counts[word], word, pairs, places)
            pieces[word] = _replaced(pieces[word], pair)
            _count(pieces[word], counts[word], word, pairs, places)
    return merges


def _count(pieces, count, word, pairs, places):
    for pair in itertools.pairwise(pieces):
        pairs[pair] += count
        if pairs[pair] <= 0:
            del pairs[pair]
        if count > 0:
            places[pair].add(word)


def _replaced(pieces, pair):
    """Joins a pair wherever it stands, from the left."""
    found, place = [], 0
    while place < len(pieces):
        if tuple(pieces[place : place + 2]) == pair:
            found.append(pieces[place] + pieces[place + 1])
            place += 2
        else:
            found.append(pieces[place])
            place += 1
    return found
