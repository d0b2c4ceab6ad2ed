"""make_documents: short documents of sentences that share their words."""

from keras_attn.datasets import sampling
from keras_attn.datasets.phrase_grammar import passages


def make_documents(
    n: int, *, seed: int = 0, split: str = "train"
) -> list[list[str]]:
    """Makes short documents for language models and pre-training.

    A document has two to four sentences about the same few people and things,
    so what comes before helps to predict a word. They are in the same style as
    the contexts of `make_questions`: 12 to 48 words per document, in lower
    case; words and full stops are separated by spaces. There are millions of
    documents, with 277 different words.

    Test documents have an adjective that describes a noun ("the large cat",
    "the cat is large") with which it is in no document of the other splits. 5 %
    of the other documents, by their words, are for validation.

    Args:
        n: int >= 0. Number of documents.
        seed: int >= 0. Default 0.
        split: "train", "validation" or "test". Default "train".

    Returns:
        List of n distinct documents, each a list of str, its sentences.

    Raises:
        ValueError: an argument is invalid.

    Examples:
        >>> for sentence in keras_attn.datasets.make_documents(4)[3]:
        ...     print(sentence)
        our aunt opened the cup in his dangerous village .
        the cup is full .
        our strong grandfather opened his green boxes .
        our strong grandfather opened the cup .
    """
    sampling.check_arguments(n, seed, split)
    return sampling.take_distinct(n, _candidates(seed, split))


def _candidates(seed, split):
    random = sampling.named_random(seed, "documents")
    while True:
        facts = passages.passage(random)
        if passages.split_of(facts) == split:
            sentences = passages.sentences(facts)
            yield tuple(sentences), sentences
        else:
            yield None
