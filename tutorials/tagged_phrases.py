"""Tagged sentences of the phrase grammar, some words of which are held out."""

import hashlib

import phrase_grammar
import phrase_tags

_HIDDEN = 8  # One word of so many.


def tagged_phrases(count, seed=0):
    """Writes sentences with the tag of each word, and splits them.

    One noun, verb or adjective of eight is held out, with all its forms:
    sentences that have one are for the test, the others for training.

    Args:
        count: int. Sentences to write, both parts together.
        seed: int.

    Returns:
        Two lists of sentences, to train on and to test on, each sentence a
        list of (word, tag).

    Examples:
    >>> train, test = tagged_phrases(100)
    >>> len(train) + len(test)
    100
    """
    train, test = [], []
    for english, _ in phrase_grammar.generate_pairs(count, seed):
        known = phrase_grammar.content_words(english)
        part = test if any(map(_is_hidden, known)) else train
        tags = phrase_tags.tags(english)
        part.append(list(zip(english.split(), tags, strict=True)))
    return train, test


def _is_hidden(word):
    digest = hashlib.sha256(word.encode()).hexdigest()
    return int(digest, 16) % _HIDDEN == 0
