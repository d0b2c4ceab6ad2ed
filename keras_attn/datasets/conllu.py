"""read_conllu: sentences with part-of-speech tags from CoNLL-U files."""

import itertools
import re
from collections.abc import Callable
from typing import Any

from keras_attn import checks
from keras_attn.datasets.data_files import TextFile
from keras_attn.datasets.tagged_sentence import TaggedSentence
from keras_attn.typing import BadLines, PathLike

_COLUMNS = {"upos": 3, "xpos": 4}
_WORD = re.compile(r"[1-9]\d*")
# Multiword tokens (`3-4`) and empty nodes (`5.1`), whose words or place in the
# sentence have lines of their own.
_NO_WORD = re.compile(r"\d+-\d+|\d+\.\d+")


def read_conllu(
    path: PathLike, *, tags: str = "upos", on_bad_lines: BadLines = "error"
) -> list[TaggedSentence]:
    r"""Reads words and their part-of-speech tags from a CoNLL-U file.

    The format of the Universal Dependencies treebanks
    (https://universaldependencies.org/format.html): one word per line in ten
    tab-separated columns, a blank line after each sentence, comments after `#`.
    Lines of multiword tokens (`3-4`) and empty nodes (`5.1`) are skipped.

    Args:
        path: str or `os.PathLike`. The file, in UTF-8, plain or `.gz`.
        tags: "upos" (universal tags, column 4) or "xpos" (tags of the language,
            column 5). Default "upos".
        on_bad_lines: "error", "warn", "skip" or a callable. What to do with a
            line that is malformed or not UTF-8; see `read_lines`. The sentence
            of a bad line is dropped with it. Default "error".

    Returns:
        List of `TaggedSentence`.

    Raises:
        DataFileError: the file cannot be read or has no sentences, or a line is
            bad.

    Examples:
        >>> import pathlib, tempfile
        >>> path = pathlib.Path(tempfile.mkdtemp(), "treebank.conllu")
        >>> _ = path.write_text(
        ...     "# text = Dogs bark\n"
        ...     "1\tDogs\tdog\tNOUN\tNNS\t_\t2\tnsubj\t_\t_\n"
        ...     "2\tbark\tbark\tVERB\tVBP\t_\t0\troot\t_\t_\n"
        ... )
        >>> sentence = keras_attn.datasets.read_conllu(path)[0]
        >>> sentence.words, sentence.tags
        (('Dogs', 'bark'), ('NOUN', 'VERB'))
    """
    checks.choice("tags", tags, tuple(_COLUMNS))
    column = _COLUMNS[tags]

    def parse(line):
        columns = line.split("\t")
        if len(columns) > column:
            if _NO_WORD.fullmatch(columns[0]):
                return ()
            if _WORD.fullmatch(columns[0]) and columns[1]:
                return columns[1], columns[column]
        return None

    file = TextFile(path, on_bad_lines)
    expected = f"`id<tab>word<tab>...` with {tags} in column {column + 1}"
    return read_sentences(file, parse, expected, comment="#")


def read_sentences(
    file: TextFile,
    parse: Callable[..., Any] | None,
    expected: str,
    comment: str | None = None,
) -> list[TaggedSentence]:
    """Reads tagged sentences, separated by blank lines.

    Args:
        file: `TextFile`.
        parse: callable of a line. Returns (word, tag), or () for a line without
            a word, or None for a bad line.
        expected: str. What a line should be, for error messages.
        comment: str. Prefix of lines to skip, or None.

    Returns:
        List of `TaggedSentence`, without those that have a bad line.
    """
    sentences, rows, is_bad = [], [], False
    for number, line in itertools.chain(file, [(None, "")]):
        if line is not None and not line.strip():
            if rows and not is_bad:
                sentences.append(TaggedSentence(*zip(*rows, strict=True)))
            rows, is_bad = [], False
        elif line is None:
            is_bad = True
        elif comment is None or not line.startswith(comment):
            row = parse(line)
            if row:
                rows.append(row)
            elif row is None:
                received = checks.shown(line)
                file.bad(number, f"expected {expected}, received {received}")
                is_bad = True
    return file.require(sentences, "sentence with tags")
