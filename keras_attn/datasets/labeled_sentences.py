"""make_labeled_sentences: sentences with the class of their pattern."""

from keras_attn.datasets import sampling
from keras_attn.datasets.labeled_sentence import LabeledSentence
from keras_attn.datasets.phrase_grammar.held_out import sentence_split
from keras_attn.datasets.phrase_grammar.sampler import (
    PATTERNS,
    SentenceSampler,
)

_LABELS = tuple(PATTERNS)


def make_labeled_sentences(
    n: int, *, seed: int = 0, split: str = "train"
) -> list[LabeledSentence]:
    """Makes sentences of eight classes.

    For sentence classification. The class is what kind of statement a sentence
    makes, whatever its words: "action", "comparison", "compound" (two clauses),
    "description", "existence", "feeling", "location" or "preference". All are
    equally frequent.

    Sentences have 3 to 15 words, in lower case, without punctuation. Millions
    of them are distinct; there are 473 different words. The splits are
    those of `make_translation_pairs`.

    Args:
        n: int >= 0. Number of sentences.
        seed: int >= 0. Default 0.
        split: "train", "validation" or "test". Default "train".

    Returns:
        List of n distinct `LabeledSentence`.

    Raises:
        ValueError: an argument is invalid.

    Examples:
        >>> for sentence in keras_attn.datasets.make_labeled_sentences(3):
        ...     print(sentence.label, "|", sentence.text)
        action | we have to have two tables behind a market
        feeling | she is hungry
        preference | the friend likes these french lemons
    """
    sampling.check_arguments(n, seed, split)
    return sampling.take_distinct(n, _candidates(seed, split))


def _candidates(seed, split):
    random = sampling.named_random(seed, "labeled sentences")
    sampler = SentenceSampler(random)
    while True:
        label = random.choice(_LABELS)
        text = sampler.sentence(label).english
        is_wanted = sentence_split(text) == split
        yield (text, LabeledSentence(text, label)) if is_wanted else None
