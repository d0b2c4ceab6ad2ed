"""read_conll_bio: sentences with BIO tags of entities."""

import re
from typing import TYPE_CHECKING

from keras_attn.datasets.conllu import read_sentences
from keras_attn.datasets.data_files import TextFile
from keras_attn.typing import BadLines, PathLike

if TYPE_CHECKING:
    from keras_attn.datasets.tagged_sentence import TaggedSentence


_TAG = re.compile(r"O|[BI]-.+")


def read_conll_bio(
    path: PathLike, *, on_bad_lines: BadLines = "error"
) -> "list[TaggedSentence]":
    r"""Reads words and their BIO tags, such as those of named entities.

    The format of the CoNLL shared tasks and of WNUT 2017: one word per line, in
    columns separated by tabs or spaces, the word first and its tag last, and a
    blank line after each sentence. A tag is `B-type` for the first word of an
    entity, `I-type` for a further one, or `O`. Tags are returned as they are
    in the file, in the older scheme too, in which `I-type` may begin an entity.
    Lines that begin with `-DOCSTART-` are skipped.

    Args:
        path: str or `os.PathLike`. The file, in UTF-8, plain or `.gz`.
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
        >>> path = pathlib.Path(tempfile.mkdtemp(), "train.conll")
        >>> _ = path.write_text(
        ...     "Ann\tB-person\nLee\tI-person\nsings\tO\n")
        >>> sentence = keras_attn.datasets.read_conll_bio(path)[0]
        >>> sentence.words, sentence.tags
        (('Ann', 'Lee', 'sings'), ('B-person', 'I-person', 'O'))
    """

    def parse(line):
        if line.startswith("-DOCSTART-"):
            return ()
        # Not `split()`, because a word may be a no-break space.
        columns = re.split("\t" if "\t" in line else " +", line.strip(" "))
        word, tag = columns[0], columns[-1]
        if len(columns) < 2 or not word or not _TAG.fullmatch(tag):
            return None
        return word, tag

    file = TextFile(path, on_bad_lines)
    return read_sentences(file, parse, "a word and a tag `B-`, `I-` or `O`")
