"""Documents of a parallel corpus: what translates the same stands together.

    .venv/bin/python tutorials/paraphrase_documents.py A.zip B.zip > text.txt

writes the sentences of the first column, each once, for `DATA=` of the tutorial
on BERT. Two that stand beside the same translation say nearly the same: such
are one document, so that the question whether the second sentence follows asks
whether it means the same. Of the other sentences eight drawn at random are a
document, of which that question cannot be answered.
"""

import random
import sys

import corpora

TOGETHER = 8  # sentences of a document that have nothing in common


def paraphrase_documents(corpora_pairs, seed=1):
    """Groups the sentences of parallel corpora by what translates them.

    Args:
        corpora_pairs: list of corpora, each a list of tuples (sentence,
            translation) of str.
        seed: int. Of the order.

    Returns:
        List of lists of str, in an order drawn at random, each sentence once.

    Examples:
    >>> sorted(map(sorted, paraphrase_documents([
    ...     [("Go on.", "Weiter."), ("Stop.", "Halt."), ("Proceed.", "Weiter.")]
    ... ])))
    [['Go on.', 'Proceed.'], ['Stop.']]
    """
    group_of = {}
    groups = []
    for pairs in corpora_pairs:
        translated = {}
        for sentence, translation in pairs:
            translated.setdefault(translation, {})[sentence] = None
        for alike in translated.values():
            # A sentence stays with those that it was first found with.
            new = [sentence for sentence in alike if sentence not in group_of]
            found = [group_of[s] for s in alike if s in group_of]
            if not found:
                groups.append([])
            number = found[0] if found else len(groups) - 1
            groups[number] += new
            group_of |= dict.fromkeys(new, number)
    draw = random.Random(seed)
    documents = [group for group in groups if len(group) > 1]
    alone = [group[0] for group in groups if len(group) == 1]
    draw.shuffle(alone)
    documents += [
        alone[start : start + TOGETHER]
        for start in range(0, len(alone), TOGETHER)
    ]
    for document in documents:
        draw.shuffle(document)
    draw.shuffle(documents)
    return documents


def main(paths):
    """Prints the documents of some corpora, and says what was found."""
    try:
        read = [corpora.read_pairs(path) for path in paths]
    except corpora.CorpusError as error:
        sys.exit(f"paraphrase_documents: {error}")
    documents = paraphrase_documents(read)
    for document in documents:
        print(*document, sep="\n", end="\n\n")
    print(
        f"{sum(map(len, documents)):,} sentences, {len(documents):,} documents",
        file=sys.stderr,
    )


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    main(sys.argv[1:])
