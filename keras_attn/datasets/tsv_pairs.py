"""read_tsv_pairs: sentence pairs in one tab-separated file."""

from keras_attn import checks
from keras_attn.datasets.data_files import TextFile
from keras_attn.datasets.translation_pairs import TranslationPair
from keras_attn.typing import BadLines, PathLike


def read_tsv_pairs(
    path: PathLike, *, on_bad_lines: BadLines = "error"
) -> list[TranslationPair]:
    r"""Reads sentences and their translations from a tab-separated file.

    Each line is `source<tab>target`, without quoting, as in the sentence pairs
    of the Tatoeba project (https://www.manythings.org/anki/). Further columns
    are ignored. Lines without text in the source or the target are skipped.

    Args:
        path: str or `os.PathLike`. The file, in UTF-8, plain or `.gz`; or a
            `.zip` with one such `.txt` or `.tsv` file. Files `*_about.txt` and
            files without tabs in the `.zip` are ignored.
        on_bad_lines: "error", "warn", "skip" or a callable. What to do with a
            line that has no tab or is not UTF-8; see `read_lines`. Default
            "error".

    Returns:
        List of `TranslationPair`, with the texts as they are in the file.

    Raises:
        DataFileError: the file cannot be read or has no pairs, or a line is
            bad.

    Examples:
        >>> import pathlib, tempfile
        >>> path = pathlib.Path(tempfile.mkdtemp(), "spa.txt")
        >>> _ = path.write_text("Go.\tVe.\nGo.\tVete.\n", encoding="utf-8")
        >>> pairs = keras_attn.datasets.read_tsv_pairs(path)
        >>> pairs[1].source, pairs[1].target
        ('Go.', 'Vete.')
    """
    file = TextFile(path, on_bad_lines, (".txt", ".tsv"), b"\t")
    pairs = []
    for number, line in file:
        if line is None or not line.strip():
            continue
        columns = line.split("\t")
        if len(columns) < 2:
            file.bad(
                number,
                f"expected `source<tab>target`, received {checks.shown(line)}",
            )
        elif columns[0].strip() and columns[1].strip():
            pairs.append(TranslationPair(*columns[:2]))
    return file.require(pairs, "pair of a source and a target")
