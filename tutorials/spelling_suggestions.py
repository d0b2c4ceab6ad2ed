"""Suggestions for misspelt words, and how good they are."""

from typing import NamedTuple

import numpy as np
from letters import UNKNOWN

from keras_attn.decoding import BeamSearch

# The most characters that a correction may have, its end among them.
LONGEST = 40
# Few words are decoded in a batch of one size, so that any number of them is
# the same program.
_FEW = 32


class Suggestion(NamedTuple):
    """One of the words that may have been meant.

    Args:
        word: str.
        probability: float. That of the whole word under the model.
    """

    word: str
    probability: float


def search(model, letters, words, count=5, batch_size=128, weights=False):
    """Searches for the likeliest corrections of words.

    A beam search without length penalty: the score of a correction is then its
    log-probability.

    Args:
        model: `keras_attn.models.Transformer` over letters.
        letters: `Letters`.
        words: list of B str of less than 40 characters.
        count: int. Corrections of each word, and beams of the search.
        batch_size: int. Words decoded together.
        weights: bool. Whether to return where the corrections looked.

    Returns:
        `keras_attn.decoding.Decoded`: tokens (B, count, 40), scores and
        lengths (B, count), and weights (B, count, M, N, 40, S), or None.

    Raises:
        ValueError: no word, or one that is too long.
    """
    if not words or max(map(len, words)) >= LONGEST:
        raise ValueError(
            f"`words` must be words of less than {LONGEST} characters. "
            f"Received: {max(words, key=len, default=[])!r}"
        )
    rows = [letters.encode(word) for word in words]
    spare = max(0, _FEW - len(rows))
    decoded = model.generate(
        rows + rows[-1:] * spare,
        max_new_tokens=LONGEST,
        strategy=BeamSearch(
            count,
            num_return_sequences=count,
            length_penalty=0,
            suppress_tokens=[UNKNOWN],
            min_new_tokens=2,  # a letter and the end
        ),
        batch_size=batch_size if len(rows) > _FEW else _FEW,
        return_weights=weights,
    )
    return type(decoded)(
        *(None if part is None else part[: len(rows)] for part in decoded)
    )


def suggest(model, letters, words, count=5, batch_size=128):
    """Returns the likeliest corrections of words, best first.

    Args:
        model: `keras_attn.models.Transformer` over letters.
        letters: `Letters`.
        words: list of str of less than 40 characters.
        count: int. Suggestions for each word, and beams of the search.
        batch_size: int. Words decoded together.

    Returns:
        List of lists of `Suggestion`, `count` for each word, or fewer where
        the search has found fewer words.

    Raises:
        ValueError: a word that is too long.
    """
    if not words:
        return []
    decoded = search(model, letters, words, count, batch_size)
    found = []
    for tokens, scores in zip(decoded.tokens, decoded.scores, strict=True):
        best = {}
        for ids, score in zip(tokens, np.exp(scores), strict=True):
            # Two rows may spell one word, one of them cut off.
            if score > 0:
                best.setdefault(letters.decode(ids), float(score))
        found.append([Suggestion(*item) for item in best.items()])
    return found


def recall(suggestions, rights, n=1):
    """Returns how often the right word is among the first n suggestions.

    Args:
        suggestions: list of lists of `Suggestion`.
        rights: list of str, the word that was meant each time.
        n: int.

    Returns:
        Float in [0, 1]; with n = 1 the share of exact matches.
    """
    hits = [
        right in [word for word, _ in found[:n]]
        for found, right in zip(suggestions, rights, strict=True)
    ]
    return float(np.mean(hits))


def replaced(word, found, sure):
    """Returns what a program writes: the best suggestion, if it is sure.

    Args:
        word: str, as it stood there.
        found: list of `Suggestion`, best first.
        sure: float. The least probability at which a word is replaced.

    Returns:
        Str.
    """
    if found and found[0].probability >= sure:
        return found[0].word
    return word
