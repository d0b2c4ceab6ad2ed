"""make_tagged_sentences: sentences with a tag for each word."""

import functools

from keras_attn import checks
from keras_attn.datasets import sampling
from keras_attn.datasets.phrase_grammar import facts, part_of_speech
from keras_attn.datasets.phrase_grammar.held_out import (
    content_words,
    hash_fraction,
)
from keras_attn.datasets.phrase_grammar.passages import passage
from keras_attn.datasets.phrase_grammar.sampler import SentenceSampler
from keras_attn.datasets.tagged_sentence import TaggedSentence


def make_tagged_sentences(
    n: int, *, seed: int = 0, split: str = "train", tags: str = "upos"
) -> list[TaggedSentence]:
    """Makes sentences with part-of-speech tags or BIO tags of roles.

    For sequence tagging. With `tags="upos"`, the tags are the twelve of the
    Universal Dependencies (https://universaldependencies.org/u/pos) that the
    grammar needs. Most words have one tag; "open", "clean", "closed", "to",
    "as" and "next" have two, which depend on their neighbors. With
    `tags="roles"`, seven BIO tags mark the subject, the object and the location
    of the sentence.

    Sentences have 3 to 15 words, in lower case, without punctuation. Millions
    of them are distinct. There are about 470 different words, 270 with roles.

    One in eight nouns, verbs and adjectives is held out with all its forms:
    each test sentence has such a word, and no other sentence has any. So a
    model must tag unknown words by their context or spelling. Of the other
    sentences, 5 % are for validation, by their content words.

    Args:
        n: int >= 0. Number of sentences.
        seed: int >= 0. Default 0.
        split: "train", "validation" or "test". Default "train".
        tags: "upos" or "roles". Default "upos".

    Returns:
        List of n distinct `TaggedSentence`.

    Raises:
        ValueError: an argument is invalid.

    Examples:
        >>> words, tags = keras_attn.datasets.make_tagged_sentences(4)[3]
        >>> " ".join(words)
        'the hospitals are as ugly as their maps'
        >>> " ".join(tags)
        'DET NOUN AUX ADV ADJ ADP PRON NOUN'
        >>> sentences = keras_attn.datasets.make_tagged_sentences(
        ...     3, tags="roles")
        >>> for word, tag in zip(*sentences[2]):
        ...     print(word, tag)
        the B-subject
        weak I-subject
        sister I-subject
        is O
        in B-location
        the I-location
        house I-location
    """
    sampling.check_arguments(n, seed, split)
    checks.choice("tags", tags, ("upos", "roles"))
    sentences = {"upos": _with_parts_of_speech, "roles": _with_roles}[tags]
    return sampling.take_distinct(n, _candidates(sentences(seed), split))


def _candidates(sentences, split):
    for sentence in sentences:
        is_wanted = _split(content_words(" ".join(sentence.words))) == split
        yield (sentence.words, sentence) if is_wanted else None


def _with_parts_of_speech(seed):
    sampler = SentenceSampler(sampling.named_random(seed, "parts of speech"))
    while True:
        words = sampler.sentence().english.split()
        yield TaggedSentence(tuple(words), tuple(part_of_speech.tag(words)))


def _with_roles(seed):
    random = sampling.named_random(seed, "roles")
    while True:
        for fact in passage(random):
            words, spans = facts.sentence(fact)
            tags = ["O"] * len(words)
            for role, (start, stop) in spans.items():
                tags[start:stop] = [f"I-{role}"] * (stop - start)
                tags[start] = f"B-{role}"
            yield TaggedSentence(tuple(words), tuple(tags))


def _split(words):
    if any(map(_is_held_out, words)):
        return "test"
    is_validation = hash_fraction("tagged sentence", *words) < 0.05
    return "validation" if is_validation else "train"


@functools.cache
def _is_held_out(word):
    return hash_fraction("tagged word", word) < 1 / 8
