"""Sentences whose words have tags: CoNLL-U files, read."""

import corpora


def read_tagged(path):
    """Reads words and their tags from a CoNLL-U file.

    Args:
        path: path of the file, plain or `.gz`: a word a line, its columns
            apart by tabs, the second the word and the fourth its universal
            part of speech (UPOS); an empty line behind each sentence. Comments
            (#), words of several tokens (`3-4`) and empty nodes (`5.1`) are
            passed over.

    Returns:
        List of sentences, each a list of (word, tag).

    Raises:
        CorpusError: there is nothing to read; the message names the file and,
            where it can, the line.
    """
    sentences, sentence = [], []
    for number, line in enumerate([*corpora.read_lines(path), ""], 1):
        if not line.strip():
            if sentence:
                sentences.append(sentence)
            sentence = []
        elif not line.startswith("#"):
            columns = line.split("\t")
            if len(columns) < 4:
                raise corpora.CorpusError(
                    f"Line {number:,} of {path} has no tab-separated columns "
                    f"with a word and its tag: {line[:60]!r}"
                )
            if columns[0].isdigit():
                sentence.append((columns[1], columns[3]))
    if not sentences:
        raise corpora.CorpusError(f"{path}: there is no sentence with tags.")
    return sentences
