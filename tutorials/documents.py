"""Documents, each a list of sentences: read, or written by the grammar."""

import random

import corpora
from phrase_passages import passage, write
from phrase_sampler import PhraseSampler


def read_documents(paths):
    """Reads documents.

    Args:
        paths: str, a file or several with commas between, plain or `.gz`. A
            treebank (`.conllu`) has its documents behind `# newdoc` and its
            sentences behind `# text =`; any other text has a sentence a line,
            and an empty line behind each document.

    Returns:
        List of lists of str.

    Raises:
        CorpusError: a file that cannot be read, or fewer than two documents.
    """
    documents = []
    for path in paths.split(","):
        lines = corpora.read_lines(path.strip())
        treebank = ".conllu" in path
        documents += _of_treebank(lines) if treebank else _of_text(lines)
    documents = [document for document in documents if document]
    if len(documents) < 2:
        raise corpora.CorpusError(
            f"{paths}: there must be two documents at least. "
            f"Found: {len(documents)}"
        )
    return documents


def passage_documents(count, seed):
    """Writes passages of the phrase grammar.

    Args:
        count: int. How many.
        seed: int. The same seed gives the same passages.

    Returns:
        List of lists of str.

    Examples:
    >>> passage_documents(1, 1)[0][0]
    'the young teacher read the difficult book .'
    """
    draw = random.Random(seed)
    return [
        [
            f"{sentence} ."
            for sentence in " ".join(write(passage(draw))[0])
            .removesuffix(" .")
            .split(" . ")
        ]
        for _ in range(count)
    ]


def sentence_documents(count, seed, length=3):
    """Writes sentences of all patterns of the phrase grammar, a few together.

    Args:
        count: int. How many documents.
        seed: int. The same seed gives the same sentences.
        length: int. Sentences of each.

    Returns:
        List of lists of str.

    Examples:
    >>> len(sentence_documents(2, 1)[1])
    3
    """
    sampler = PhraseSampler(seed)
    return [
        [f"{sampler.sentence().english} ." for _ in range(length)]
        for _ in range(count)
    ]


def _of_treebank(lines):
    documents = [[]]
    for line in lines:
        if line.startswith("# newdoc"):
            documents.append([])
        elif line.startswith("# text = "):
            documents[-1].append(line.removeprefix("# text = "))
    return documents


def _of_text(lines):
    documents = [[]]
    for line in lines:
        if line.strip():
            documents[-1].append(line.strip())
        elif documents[-1]:
            documents.append([])
    return documents
