"""read_misspellings: lists of misspellings and their corrections."""

from keras_attn import checks
from keras_attn.datasets.data_files import TextFile
from keras_attn.datasets.misspellings import Misspelling
from keras_attn.typing import BadLines, PathLike


def read_misspellings(
    path: PathLike, *, on_bad_lines: BadLines = "error"
) -> list[Misspelling]:
    r"""Reads misspelled words and their corrections.

    Each line is either `wrong->right`, as in the dictionaries of codespell
    (https://github.com/codespell-project/codespell), or `wrong<tab>right`,
    whose further columns are ignored. In the first format, commas separate
    several corrections, and text after the last comma is a remark:
    `wrong->right1, right2,` has two corrections, `wrong->right, remark` one.
    Lines with several corrections are skipped, because only the sentence tells
    which of them is meant. So are blank lines, repetitions, and words that are
    their own correction.

    Args:
        path: str or `os.PathLike`. The file, in UTF-8, plain or `.gz`.
        on_bad_lines: "error", "warn", "skip" or a callable. What to do with a
            line that is malformed or not UTF-8; see `read_lines`. Default
            "error".

    Returns:
        List of `Misspelling`.

    Raises:
        DataFileError: the file cannot be read or has no misspelling with one
            correction, or a line is bad.

    Examples:
        >>> import pathlib, tempfile
        >>> path = pathlib.Path(tempfile.mkdtemp(), "dictionary.txt")
        >>> _ = path.write_text("becuase->because\nabd->and, bad,\n")
        >>> words = keras_attn.datasets.read_misspellings(path)
        >>> len(words), words[0].wrong, words[0].right
        (1, 'becuase', 'because')
    """
    file = TextFile(path, on_bad_lines)
    found = {}
    for number, line in file:
        if line is None or not line.strip():
            continue
        wrong, corrections = _parse(line)
        if not wrong or not corrections:
            file.bad(
                number,
                "expected `wrong->right` or `wrong<tab>right`, received "
                f"{checks.shown(line)}",
            )
        elif len(corrections) == 1 and corrections[0] != wrong:
            # A dict is an ordered set.
            found[Misspelling(wrong, corrections[0])] = None
    return file.require(list(found), "misspelling with one correction")


def _parse(line):
    """Returns the misspelled word and the list of its corrections."""
    if "->" in line:
        wrong, _, rest = line.partition("->")
        if "," in rest:
            rest = rest.rpartition(",")[0]
        corrections = rest.split(",")
    else:
        wrong, *columns = line.split("\t")
        corrections = columns[:1]
    stripped = [correction.strip() for correction in corrections]
    return wrong.strip(), [correction for correction in stripped if correction]
