"""make_sentence_pairs: pairs for BERT's next sentence prediction."""

from typing import NamedTuple

from keras_attn.datasets import sampling
from keras_attn.datasets.phrase_grammar import passages


class SentencePair(NamedTuple):
    """Two sentences, and whether the second follows the first.

    Args:
        first: str.
        second: str.
        is_next: bool. Whether the second follows the first in its document.

    Examples:
        >>> pair = keras_attn.datasets.SentencePair(
        ...     "the man saw the dog .", "the dog is wet .", True)
        >>> pair.is_next
        True
    """

    first: str
    second: str
    is_next: bool


def make_sentence_pairs(
    n: int, *, seed: int = 0, split: str = "train"
) -> list[SentencePair]:
    """Makes sentence pairs for BERT's next sentence prediction.

    In half of the pairs, the second sentence follows the first in its document;
    in the others, it is from another document (Devlin et al. 2019, sec. 3.1,
    https://arxiv.org/abs/1810.04805). The sentences are those of
    `make_documents`; sentences of the same document often share words. For
    your own documents, see `keras_attn.text.sentence_pairs`.

    Test pairs have an adjective that describes a noun ("the large cat", "the
    cat is large") with which it is in no pair of the other splits. 5 % of the
    other pairs, by their words, are for validation.

    Args:
        n: int >= 0. Number of pairs.
        seed: int >= 0. Default 0.
        split: "train", "validation" or "test". Default "train".

    Returns:
        List of n distinct `SentencePair`.

    Raises:
        ValueError: an argument is invalid.

    Examples:
        >>> for pair in keras_attn.datasets.make_sentence_pairs(6)[4:]:
        ...     print(pair.first, pair.second, pair.is_next)
        the actress is wet . the intelligent student is calm . False
        the famous sister opened the boxes . our kind queen opened the boxes in
        the school . True
    """
    sampling.check_arguments(n, seed, split)
    return sampling.take_distinct(n, _candidates(seed, split))


def _candidates(seed, split):
    random = sampling.named_random(seed, "sentence pairs")
    is_next = True
    while True:
        facts = passages.passage(random)
        index = random.integer(len(facts) - 1)
        pair = facts[index : index + 2]
        if not is_next:
            pair[1] = random.choice(passages.passage(random))
        if passages.split_of(pair) == split:
            texts = passages.sentences(pair)
            yield tuple(texts), SentencePair(*texts, is_next)
            is_next = random.happens(0.5)
        else:
            yield None
