"""Parallel corpora: sentences with their translations, read and split.

Two text files that agree line by line, or one file with a tab between each
sentence and its translation: plain, `.gz`, or packed in a `.zip`.
"""

import gzip
import hashlib
import pathlib
import zipfile
import zlib

_BROKEN = (EOFError, gzip.BadGzipFile, zipfile.BadZipFile, zlib.error)


class CorpusError(ValueError):
    """A corpus that cannot be read; the message is one line for people."""


def read_pairs(path, second=None):
    """Reads a parallel corpus.

    Args:
        path: path of the source text, one sentence a line; where there is no
            second, of one file of lines `source<tab>target`, whose further
            columns are ignored. Plain or `.gz`; the file with tabs may lie in
            a `.zip`. The str `file1,file2` names both texts at once.
        second: path of the target text, which has a line for each line of the
            source text.

    Returns:
        list of tuple (source, target) of str, as they stand in the file.
        Lines with nothing but space on either side are left out.

    Raises:
        CorpusError: there are no pairs to read; the message names the file
            and, where it can, the line.
    """
    if second is None and not pathlib.Path(path).exists():
        both = str(path).split(",")
        if len(both) == 2 and all(map(str.strip, both)):
            path, second = map(str.strip, both)
    if second is None:
        pairs = _columns(path, _lines(path, _tabbed(path)))
        where = path
    else:
        source, target = (
            _lines(path, _text(path)),
            _lines(second, _text(second)),
        )
        if len(source) != len(target):
            raise CorpusError(
                f"{path} has {len(source):,} lines and {second} "
                f"{len(target):,}: they must agree line by line."
            )
        pairs = zip(source, target, strict=True)
        where = f"{path} with {second}"
    pairs = [(s, t) for s, t in pairs if s.strip() and t.strip()]
    if not pairs:
        raise CorpusError(f"{where}: there is no sentence with a translation.")
    return pairs


def read_lines(path):
    """Reads a text file, one sentence a line.

    Args:
        path: path of the file, plain or `.gz`.

    Returns:
        list of str, empty lines among them.

    Raises:
        CorpusError: the file cannot be read or is not UTF-8.
    """
    return _lines(path, _text(path))


def split_by_source(pairs):
    """Splits pairs so that no source sentence is on two sides.

    A sentence often has several translations, so lines drawn at random would
    put the same source into training and test. Which side a source is on is a
    matter of its own text, h = sha256(source) mod 20: test where h is 0,
    validation where it is 1, training elsewhere. It never changes as a corpus
    grows.

    Args:
        pairs: list of tuple (source, target) of str.

    Returns:
        Tuple (training, validation, test) of such lists, in the same order.
    """
    test, validation, training = [], [], []
    for pair in pairs:
        digest = hashlib.sha256(pair[0].encode("utf-8")).hexdigest()
        side = {0: test, 1: validation}.get(int(digest, 16) % 20, training)
        side.append(pair)
    return training, validation, test


def group_references(pairs):
    """Gathers all translations of each source.

    Args:
        pairs: list of tuple (source, target) of str.

    Returns:
        Tuple (sources, references): list of str, each once, in the order of
        their first pair; for each the list of its different translations.
    """
    found = {}
    for source, target in pairs:
        # A dict keeps the order and takes each translation once.
        found.setdefault(source, {})[target] = None
    return list(found), [list(targets) for targets in found.values()]


def fingerprint(pairs):
    """Returns a few words that are the same for the same pairs only.

    Args:
        pairs: list of tuple (source, target) of str.

    Returns:
        Str: how many they are, and the beginning of their hash.
    """
    digest = hashlib.sha256()
    for pair in pairs:
        digest.update("\t".join(pair).encode("utf-8") + b"\n")
    return f"{len(pairs)} pairs, {digest.hexdigest()[:16]}"


def unseen(sources, references, train_pairs):
    """Finds the sources whose translations were never a training target.

    Different sources share translations ("Go." and "Leave." are one word in
    many languages), so some answers of a test were read in training.

    Args:
        sources: list of str.
        references: list of list of str, the translations of each source.
        train_pairs: list of tuple (source, target) of str.

    Returns:
        list of int, indices into `sources`.
    """
    targets = {target for _, target in train_pairs}
    return [
        index
        for index, _ in enumerate(sources)
        if targets.isdisjoint(references[index])
    ]


def _columns(path, lines):
    """Yields the first two columns of lines with tabs."""
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        columns = line.split("\t")
        if len(columns) < 2:
            raise CorpusError(
                f"Line {number:,} of {path} has no tab between a sentence and "
                f"its translation: {line[:60]!r}"
            )
        yield columns[0], columns[1]


def _lines(path, content):
    """Splits bytes into lines of text."""
    content = content.removeprefix(b"\xef\xbb\xbf")  # a byte order mark
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        number = content.count(b"\n", 0, error.start) + 1
        raise CorpusError(
            f"Line {number:,} of {path} is not UTF-8 text."
        ) from error
    # Not splitlines: a sentence may hold U+2028 or a form feed.
    lines = text.removesuffix("\n").split("\n") if text else []
    return [line.removesuffix("\r") for line in lines]


def _tabbed(path):
    """Reads the bytes of a file with tabs, out of a `.zip` where it is one."""
    if not _is_zip(path):
        return _text(path)
    try:
        with zipfile.ZipFile(path) as archive:
            found = {
                name: content
                for name in archive.namelist()
                if name.endswith((".txt", ".tsv"))
                and not name.endswith("_about.txt")
                and not name.startswith("__MACOSX/")
                and b"\t" in (content := archive.read(name))
            }
    # RuntimeError: it asks for a password. NotImplementedError, which is one:
    # a compression that Python does not know.
    except (OSError, RuntimeError, *_BROKEN) as error:
        raise CorpusError(f"{path} cannot be unpacked: {error}.") from error
    if len(found) != 1:
        names = ", ".join(sorted(found)) or "none"
        raise CorpusError(
            f"{path} must hold one .txt or .tsv file with tabs. Found: {names}."
        )
    return next(iter(found.values()))


def _text(path):
    """Reads the bytes of a text file, plain or `.gz`."""
    if _is_zip(path):
        raise CorpusError(
            f"{path} is a .zip: of two texts, each must be plain or .gz."
        )
    zipped = str(path).endswith(".gz")
    try:
        with gzip.open(path) if zipped else open(path, "rb") as stream:
            return stream.read()
    except FileNotFoundError as error:
        raise CorpusError(f"There is no file {path}.") from error
    except IsADirectoryError as error:
        raise CorpusError(f"{path} is a folder; a file is needed.") from error
    except _BROKEN as error:
        raise CorpusError(f"{path} cannot be unpacked: {error}.") from error
    except OSError as error:
        raise CorpusError(
            f"{path} cannot be read: {error.strerror}."
        ) from error


def _is_zip(path):
    """Whether a file says by its name that it is a `.zip`."""
    path = pathlib.Path(path)
    return path.suffix.lower() == ".zip" and path.is_file()
