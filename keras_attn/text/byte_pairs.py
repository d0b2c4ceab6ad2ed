"""Byte-pair encoding: GPT-2's word pattern, merging, and learning merges."""

import collections
import functools
import itertools
import re
import sys
import unicodedata

# Unicode white space; Python's `\s` also has four control characters.
_SPACES = r"\t-\r \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"


@functools.cache
def byte_letters():
    """Returns the character for each byte, a list of 256.

    Printable bytes map to themselves, the others to characters from 256 on, so
    that no piece contains a space or a control character.
    """
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = (b for b in range(256) if b not in printable)
    letters = {b: chr(b) for b in printable}
    letters |= {b: chr(256 + n) for n, b in enumerate(others)}
    return [letters[byte] for byte in range(256)]


@functools.cache
def _words():
    """Returns the pattern by which GPT-2 splits a text into words."""
    letters, numbers = (_class(kind) for kind in "LN")
    return re.compile(
        r"'(?:s|t|re|ve|m|ll|d)"
        rf"| ?[{letters}]+| ?[{numbers}]+"
        rf"| ?[^{_SPACES}{letters}{numbers}]+"
        rf"|[{_SPACES}]+(?![^{_SPACES}])|[{_SPACES}]+"
    )


def _class(kind):
    """Returns a Unicode category as ranges for a regex character class."""
    ranges, start = [], None
    for code in range(sys.maxunicode + 2):
        # One past the last code point, to close the last range.
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
    """Splits a text into words, each a str with one character per byte.

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
        # A lone surrogate has no valid UTF-8 encoding.
        "".join(letters[b] for b in word.encode("utf-8", "surrogatepass"))
        for word in _words().findall(text)
    ]


def joined(word, ranks):
    """Applies the merges to a word, always the earliest learned pair first.

    Args:
        word: str.
        ranks: {(piece, piece): int}, lower is earlier.

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
    """Learns the merges of a vocabulary.

    Repeatedly merges the most frequent pair of adjacent pieces; ties go to the
    first in alphabetical order (Sennrich et al. 2016,
    https://arxiv.org/abs/1508.07909).

    Args:
        counts: {word: number of occurrences}.
        number: int. How many pairs to learn, at most: learning stops when no
            pair occurs twice.

    Returns:
        List of pairs of str.

    Examples:
        >>> from keras_attn.text.byte_pairs import learn_merges
        >>> learn_merges({"low": 3, "lot": 2}, 2)
        [('l', 'o'), ('lo', 'w')]
    """
    pieces = {word: list(word) for word in counts}
    pairs, words_of = collections.Counter(), collections.defaultdict(set)
    for word in counts:
        _count(pieces[word], counts[word], word, pairs, words_of)
    merges = []
    while len(merges) < number and pairs:
        pair = min(pairs, key=lambda pair: (-pairs[pair], pair))
        if pairs[pair] < 2:
            break
        merges.append(pair)
        for word in sorted(words_of[pair]):
            _count(pieces[word], -counts[word], word, pairs, words_of)
            pieces[word] = _replaced(pieces[word], pair)
            _count(pieces[word], counts[word], word, pairs, words_of)
    return merges


def _count(pieces, count, word, pairs, words_of):
    for pair in itertools.pairwise(pieces):
        pairs[pair] += count
        if pairs[pair] <= 0:
            del pairs[pair]
        if count > 0:
            words_of[pair].add(word)


def _replaced(pieces, pair):
    """Merges every occurrence of a pair, from the left."""
    found, index = [], 0
    while index < len(pieces):
        if tuple(pieces[index : index + 2]) == pair:
            found.append(pieces[index] + pieces[index + 1])
            index += 2
        else:
            found.append(pieces[index])
            index += 1
    return found
