"""read_documents: documents as lists of sentences."""

from keras_attn.datasets.data_files import TextFile
from keras_attn.typing import BadLines, PathLike


def read_documents(
    path: PathLike, *, on_bad_lines: BadLines = "error"
) -> list[list[str]]:
    r"""Reads documents, each a list of sentences.

    Documents are for pre-training, such as BERT's next sentence prediction
    (`keras_attn.text.sentence_pairs`). In a plain text, each line is a sentence
    and blank lines separate documents. In a CoNLL-U file, whose name has the
    suffix `.conllu`, documents begin with `# newdoc` and sentences are the
    comments `# text = ...`.

    Args:
        path: str or `os.PathLike`. The file, in UTF-8, plain or `.gz`.
        on_bad_lines: "error", "warn", "skip" or a callable. What to do with a
            line that is not UTF-8; see `read_lines`. Default "error".

    Returns:
        List of documents, each a list of str without spaces around them.

    Raises:
        DataFileError: the file cannot be read or has no documents, or a line is
            bad.

    Examples:
        >>> import pathlib, tempfile
        >>> path = pathlib.Path(tempfile.mkdtemp(), "documents.txt")
        >>> _ = path.write_text("It rains.\nStay in.\n\nHello!\n")
        >>> keras_attn.datasets.read_documents(path)
        [['It rains.', 'Stay in.'], ['Hello!']]
    """
    file = TextFile(path, on_bad_lines)
    name = file.path.lower().removesuffix(".gz")
    split = _split_conllu if name.endswith(".conllu") else _split_text
    documents = split(line for _, line in file if line is not None)
    documents = [document for document in documents if document]
    return file.require(documents, "document")


def _split_conllu(lines):
    documents = [[]]
    for line in lines:
        key, _, text = line.removeprefix("#").partition("=")
        if not line.startswith("#"):
            continue
        if key.split()[:1] == ["newdoc"]:
            documents.append([])
        elif key.strip() == "text" and text.strip():
            documents[-1].append(text.strip())
    return documents


def _split_text(lines):
    documents = [[]]
    for line in lines:
        if line.strip():
            documents[-1].append(line.strip())
        else:
            documents.append([])
    return documents
