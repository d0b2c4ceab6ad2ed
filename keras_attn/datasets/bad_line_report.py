"""report_bad_lines: prints the bad lines of a file, and counts them."""

import contextlib
import sys
from collections.abc import Iterator

from keras_attn import checks
from keras_attn.typing import BadLines


@contextlib.contextmanager
def report_bad_lines(
    strict: bool = False, limit: int = 10
) -> Iterator[BadLines]:
    r"""Prints the bad lines that a reader skips, and their number at the end.

    A context manager for programs that read users' files. Its value is the
    argument `on_bad_lines` of a reader.

    Args:
        strict: bool. True: the reader stops at the first bad line, and nothing
            is printed. Default False.
        limit: int >= 0. Number of bad lines to print, each with file, line
            number and reason; all are counted. Default 10.

    Yields:
        Callable of a `BadLine`, or "error" if `strict`.

    Raises:
        ValueError: an argument has another type or value.

    Examples:
        >>> import contextlib, pathlib, sys, tempfile
        >>> path = pathlib.Path(tempfile.mkdtemp(), "pairs.tsv")
        >>> _ = path.write_text("Go.\tVe.\nStop.\nRun.\n", encoding="utf-8")
        >>> with contextlib.redirect_stderr(sys.stdout):
        ...     with keras_attn.datasets.report_bad_lines(
        ...             limit=0) as on_bad_lines:
        ...         pairs = keras_attn.datasets.read_tsv_pairs(
        ...             path, on_bad_lines=on_bad_lines)
        Skipped 2 bad lines.
    """
    checks.boolean("strict", strict)
    checks.integer("limit", limit, 0)
    if strict:
        yield "error"
        return
    count = 0

    def report(line):
        nonlocal count
        count += 1
        if count <= limit:
            print(line, file=sys.stderr)

    try:
        yield report
    finally:
        if count:
            lines = "line" if count == 1 else "lines"
            print(f"Skipped {count:,} bad {lines}.", file=sys.stderr)
