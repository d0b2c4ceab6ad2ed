"""Lists of misspellings, read from files, and split.

Two formats, told apart line by line: `wrong->right`, as in codespell's
dictionaries, and two columns with a tab between, the wrong word first.
"""

import hashlib
from typing import NamedTuple

import corpora


class Misspellings(NamedTuple):
    """Holds what a file says, and what was left out.

    Args:
        pairs: list of tuple (wrong, right) of str, each once.
        several: int. Lines that name several corrections: nothing can say
            which is meant without the sentence around the word.
    """

    pairs: list
    several: int


def read_misspellings(paths):
    """Reads lists of misspellings.

    A line `wrong->right` has one correction. With commas, the text behind the
    last of them is a remark (or nothing), and corrections stand in front:
    `wrong->right1, right2,` has two, `wrong->right, remark` one. Empty lines
    are passed over.

    Args:
        paths: str. A file, plain or `.gz`, or several with commas between.

    Returns:
        A `Misspellings`.

    Raises:
        CorpusError: there is nothing to read; the message names the file and,
            where it can, the line.
    """
    found, several = {}, 0
    for path in filter(None, map(str.strip, str(paths).split(","))):
        for number, line in enumerate(corpora.read_lines(path), 1):
            if not line.strip():
                continue
            wrong, rights = _columns(line)
            if not wrong or not rights:
                raise corpora.CorpusError(
                    f"Line {number:,} of {path} is no misspelling, a word, -> "
                    f"or a tab, and the right word: {line[:60]!r}"
                )
            if len(rights) > 1:
                several += 1
            elif rights[0] != wrong:
                found[wrong, rights[0]] = None
    if not found:
        raise corpora.CorpusError(
            f"{paths}: there is no misspelling with one correction."
        )
    return Misspellings(list(found), several)


def split_by_right(pairs):
    """Splits misspellings so that no right word is on two sides.

    One word has several misspellings; split by line, what is to be found in
    the test would often have been read in training. h = sha256(right) mod 20:
    test where h is 0, validation where it is 1, training elsewhere.

    Args:
        pairs: list of tuple (wrong, right) of str.

    Returns:
        Tuple (training, validation, test) of such lists, in the same order.
    """
    test, validation, training = [], [], []
    for pair in pairs:
        digest = hashlib.sha256(pair[1].encode("utf-8")).hexdigest()
        side = {0: test, 1: validation}.get(int(digest, 16) % 20, training)
        side.append(pair)
    return training, validation, test


def _columns(line):
    """Returns the wrong word, and the list of its corrections."""
    if "->" not in line:
        wrong, _, rest = line.partition("\t")
        # Further columns are ignored.
        right = rest.partition("\t")[0].strip()
        return wrong.strip(), [right] if right else []
    wrong, _, rest = line.partition("->")
    if "," in rest:
        rest = rest.rpartition(",")[0]  # Behind it stands a remark.
    rights = [right.strip() for right in rest.split(",")]
    return wrong.strip(), [right for right in rights if right]
