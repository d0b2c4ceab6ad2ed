"""How far apart two spellings are, and the nearest word of a dictionary."""

import collections

import numpy as np


def edit_distance(first, second):
    """Returns the optimal string alignment distance of two strings.

    The fewest letters left out, added, changed, or swapped with a neighbour
    that turn one into the other, where no letter is touched twice (Damerau
    1964, Levenshtein 1966):

        d[i, j] = min(d[i-1, j] + 1, d[i, j-1] + 1, d[i-1, j-1] + [a_i != b_j],
                      d[i-2, j-2] + 1 where a_i = b_j-1 and a_i-1 = b_j)

    Args:
        first: str.
        second: str.

    Returns:
        Int.

    Examples:
    >>> [edit_distance("form", x) for x in ("from", "for", "farms", "form")]
    [1, 1, 2, 0]
    """
    before, last = [], list(range(len(second) + 1))
    for i, a in enumerate(first, 1):
        row = [i]
        for j, b in enumerate(second, 1):
            cost = min(last[j] + 1, row[j - 1] + 1, last[j - 1] + (a != b))
            if i > 1 and j > 1 and a == second[j - 2] and first[i - 2] == b:
                cost = min(cost, before[j - 2] + 1)
            row.append(cost)
        before, last = last, row
    return last[-1]


def levenshtein(found, wanted):
    """Counts the fewest characters to insert, delete or replace.

        d[i, j] = min(d[i - 1, j] + 1, d[i, j - 1] + 1,
                      d[i - 1, j - 1] + (found[i] != wanted[j]))

    Levenshtein 1966. A row of d at a time: the minimum over insertions, each
    of which costs 1, is a running minimum of d[i, j] - j.

    Args:
        found: str or list.
        wanted: str or list.

    Returns:
        Int.

    Examples:
    >>> levenshtein("kitten", "sitting")
    3
    """
    places = np.arange(len(wanted) + 1)
    row = places
    for number, item in enumerate(found, 1):
        differs = np.array([item != other for other in wanted], int)
        fresh = np.concatenate([[number], row[:-1] + differs])
        fresh = np.minimum(fresh, row + 1)
        row = np.minimum.accumulate(fresh - places) + places
    return int(row[-1])


def kind_of_error(wrong, right):
    """Says what happened to a word.

    Args:
        wrong: str.
        right: str.

    Returns:
        One of `"none"`, `"left out"`, `"single"` (of a double letter),
        `"added"`, `"doubled"`, `"changed"`, `"swapped"`, and, where it was
        more than one of these, `"several"`.

    Examples:
    >>> [kind_of_error(w, "letter") for w in ("leter", "lettre", "lettter")]
    ['single', 'swapped', 'doubled']
    """
    if edit_distance(wrong, right) != 1:
        return "none" if wrong == right else "several"
    if len(wrong) == len(right):
        changed = sum(a != b for a, b in zip(wrong, right, strict=True))
        return "swapped" if changed == 2 else "changed"
    short, long = sorted((wrong, right), key=len)
    place = next(
        i for i, c in enumerate(long) if short == long[:i] + long[i + 1 :]
    )
    twice = long[place] in (long[place - 1 : place], long[place + 1 :][:1])
    if len(wrong) < len(right):
        return "single" if twice else "left out"
    return "doubled" if twice else "added"


class Dictionary:
    """Corrects by looking up the nearest word.

    Args:
        words: iterable of str, the words that there are.
        limit: int. Words further off than so many edits are not taken.
    """

    def __init__(self, words, limit=2):
        self.words = sorted(set(words))
        self.limit = limit
        self._letters = sorted(set("".join(self.words)))
        self._counts = np.array(
            [self._count(word) for word in self.words], "int8"
        )

    def __call__(self, wrong):
        """Returns the nearest word, of several the first in the alphabet.

        Args:
            wrong: str.

        Returns:
            Str: a word of the dictionary; `wrong`, where none is near.
        """
        # An edit changes at most one letter into one other: words whose
        # letters differ by more, in whatever order, are not worth a look.
        apart = self._counts - np.array(self._count(wrong), "int8")
        missing = -np.minimum(apart, 0).sum(1, dtype="int32")
        extra = np.maximum(apart, 0).sum(1, dtype="int32")
        bound = np.maximum(missing, extra)
        best, found = self.limit + 1, wrong
        for place in np.argsort(bound, kind="stable").tolist():
            if bound[place] > min(best, self.limit):
                break
            word = self.words[place]
            distance = edit_distance(wrong, word)
            if distance < best or (distance == best and word < found):
                best, found = distance, word
        return found if best <= self.limit else wrong

    def _count(self, word):
        """Returns how often each letter is in a word, and all others."""
        counts = collections.Counter(word)
        known = [counts.pop(letter, 0) for letter in self._letters]
        return [*known, counts.total()]
