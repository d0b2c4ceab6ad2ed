"""read_classification_csv: labeled sentences in a table."""

import csv

from keras_attn import checks
from keras_attn.datasets.data_files import DataFileError, TextFile
from keras_attn.datasets.labeled_sentence import LabeledSentence
from keras_attn.typing import BadLines, PathLike


def read_classification_csv(
    path: PathLike,
    *,
    text_column: str = "text",
    label_column: str = "label",
    text_pair_column: str | None = None,
    on_bad_lines: BadLines = "error",
) -> list[LabeledSentence]:
    r"""Reads labeled sentences, or pairs of sentences, from a table.

    The first line has the names of the columns. In a `.csv` file, commas
    separate the fields, and fields in double quotes may contain commas and line
    breaks. In a `.tsv` file, tabs separate the fields and quotes are part of
    the text, as in the GLUE benchmark. Blank lines are skipped.

    Args:
        path: str or `os.PathLike`. A file `.csv` or `.tsv`, in UTF-8, plain or
            `.gz`.
        text_column: str. The column of the text. Default "text".
        label_column: str. The column of the label. Default "label".
        text_pair_column: str. The column of the second text. Default None: one
            text only.
        on_bad_lines: "error", "warn", "skip" or a callable. What to do with a
            row that has another number of fields, no text or no label, wrong
            quotes, or is not UTF-8; see `read_lines`. Default "error".

    Returns:
        List of `LabeledSentence`; the labels are str.

    Raises:
        DataFileError: the file cannot be read, lacks a column or has no rows,
            or a row is bad.

    Examples:
        >>> import pathlib, tempfile
        >>> path = pathlib.Path(tempfile.mkdtemp(), "reviews.csv")
        >>> _ = path.write_text('text,label\n"Good, but long",positive\n')
        >>> sentence = keras_attn.datasets.read_classification_csv(path)[0]
        >>> sentence.text, sentence.label
        ('Good, but long', 'positive')
    """
    columns = {"text_column": text_column, "label_column": label_column}
    if text_pair_column is not None:
        columns["text_pair_column"] = text_pair_column
    for name, column in columns.items():
        checks.string(name, column)
    file = TextFile(path, on_bad_lines)
    kind = file.path.lower().removesuffix(".gz")
    if not kind.endswith((".csv", ".tsv")):
        reason = "expected a file name with .csv or .tsv"
        raise DataFileError(file.path, reason)
    rows = _tsv_rows(file) if kind.endswith(".tsv") else _csv_rows(file)
    number, header = next(rows, (1, []))
    for column in columns.values():
        if column not in header:
            received = checks.shown(header)
            reason = f"expected a column {column!r}, received {received}"
            raise DataFileError(file.path, reason, number)
    indices = [header.index(column) for column in columns.values()]
    sentences = []
    for number, row in rows:
        if len(row) != len(header):
            reason = f"expected {len(header)} fields, received {len(row)}"
            file.bad(number, reason)
            continue
        text, label, *pair = (row[index] for index in indices)
        if all(field.strip() for field in (text, label, *pair)):
            sentences.append(LabeledSentence(text, label, *pair))
        else:
            expected = " and ".join(columns.values())
            received = checks.shown(row)
            file.bad(number, f"expected {expected}, received {received}")
    return file.require(sentences, "row after the header")


def _tsv_rows(file):
    for number, line in file:
        if line is not None and line.strip():
            yield number, line.split("\t")


def _csv_rows(file):
    """Yields the number of the first line of each row, and its fields."""
    reader = csv.reader((line + "\n" for line in file.lines), strict=True)
    while True:
        first = reader.line_num + 1
        try:
            row = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            file.bad(first, f"expected a row of fields, received {error}")
            continue
        numbers = range(first, reader.line_num + 1)
        undecodable = [n for n in numbers if n in file.undecodable]
        if undecodable:
            number = undecodable[0]
            file.bad(number, file.undecodable[number])
        elif row:
            yield first, row
