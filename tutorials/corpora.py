"""Parallel corpora: sentences with their translations, read and split.

Two text files that agree line by line, or one file with a tab between a
sentence and its translation: plain, `.gz`, or packed in a `.zip`.
"""

import gzip
import hashlib
import pathlib
import zipfile
import zlib


class CorpusError(ValueError):
    """A corpus that cannot be read; the message is one line for people."""


def read_pairs(path, second=None):
    """Reads a parallel corpus.

    Args:
        path: path of the source text, one sentence a line; where `second` is
            not given, of one file of lines `source<tab>target`, whose further
            columns are ignored. Plain or `.gz`; the file with tabs may lie in
            a `.zip`. A str `file1,file2` names both files at once.
        second: path of the target text, with a line for each source line.

    Returns:
        list of tuple (source, target) of str. Lines that are empty on either
        side are left out.

    Raises:
        CorpusError: what is there cannot be read as pairs; the message names
            the file and, where there is one, the line.
    """
    if second is None and isinstance(path, str) and not _there(path):
        path, _, second = path.partition(",")
    if second:
        source, target = _lines(path), _lines(second)
        if len(source) != len(target):
            raise CorpusError(
                f"{path} has {len(source):,} lines, {second} has "
                f"{len(target):,}: the lines of a parallel corpus must agree."
            )
        pairs = list(zip(source, target, strict=True))
    else:
        pairs = [_columns(path, *line) for line in enumerate(_lines(path), 1)]
        pairs = [pair for pair in pairs if pair]
    pairs = [(s.strip(), t.strip()) for s, t in pairs]
    pairs = [pair for pair in pairs if all(pair)]
    if not pairs:
        both = f"{path} and {second} hold" if second else f"{path} holds"
        raise CorpusError(f"{both} no sentence with a translation.")
    return pairs
