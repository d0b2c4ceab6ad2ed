"""read_parallel: sentence pairs in two files that agree line by line."""

from keras_attn.datasets.data_files import DataFileError, TextFile
from keras_attn.datasets.translation_pairs import TranslationPair
from keras_attn.typing import BadLines, PathLike


def read_parallel(
    source_path: PathLike,
    target_path: PathLike,
    *,
    on_bad_lines: BadLines = "error",
) -> list[TranslationPair]:
    r"""Reads sentences and their translations from two files.

    Line n of the second file is the translation of line n of the first, as in
    the corpora of WMT and OPUS. Pairs without text in the source or the target
    are skipped.

    Args:
        source_path: str or `os.PathLike`. The source text, in UTF-8, plain or
            `.gz`.
        target_path: str or `os.PathLike`. The target text, likewise.
        on_bad_lines: "error", "warn", "skip" or a callable. What to do with a
            pair if a line is not UTF-8; see `read_lines`. Default "error".

    Returns:
        List of `TranslationPair`, with the texts as they are in the files.

    Raises:
        DataFileError: a file cannot be read, the numbers of lines differ, there
            are no pairs, or a line is bad.

    Examples:
        >>> import pathlib, tempfile
        >>> folder = pathlib.Path(tempfile.mkdtemp())
        >>> source, target = folder / "text.en", folder / "text.es"
        >>> _ = source.write_text("Go.\nStop!\n", encoding="utf-8")
        >>> _ = target.write_text("Ve.\nAlto.\n", encoding="utf-8")
        >>> pairs = keras_attn.datasets.read_parallel(source, target)
        >>> pairs[1].source, pairs[1].target
        ('Stop!', 'Alto.')
    """
    source = TextFile(source_path, on_bad_lines, name="source_path")
    target = TextFile(target_path, on_bad_lines, name="target_path")
    if len(source.lines) != len(target.lines):
        raise DataFileError(
            target.path,
            f"expected {len(source.lines)} lines, as in {source.path}, "
            f"received {len(target.lines)}",
        )
    pairs = [
        TranslationPair(text, translation)
        for (_, text), (_, translation) in zip(source, target, strict=True)
        if text is not None
        and translation is not None
        and text.strip()
        and translation.strip()
    ]
    return source.require(pairs, f"pair with {target.path}")
