"""Learning the pieces of words, with tensorflow-text."""

from keras_attn.text import _tensorflow
from keras_attn.text.word_pieces import JOINER


def learn_word_pieces(counts, vocabulary_size, special):
    """Learns a vocabulary of WordPiece.

    Args:
        counts: {word: how often it stands in the text}.
        vocabulary_size: int. The most pieces.
        special: list of str, the first pieces.

    Returns:
        List of str.

    Raises:
        ValueError: no word at all, or a size that has no room for the
            characters.
        ImportError: tensorflow-text is not installed.
    """
    _tensorflow.tensorflow_text()
    from tensorflow_text.tools.wordpiece_vocab import (
        wordpiece_tokenizer_learner_lib as learner,
    )

    counts = {w: n for w, n in counts.items() if w not in special}
    if not counts:
        raise ValueError(
            "`lines` must hold words. Received: nothing to learn from"
        )
    characters = {c for word in counts for c in word}
    needed = len(special) + 2 * len(characters)
    if vocabulary_size < needed:
        raise ValueError(
            f"`vocabulary_size` must be at least {needed} here, for the "
            "special pieces and each character, at the beginning of a word "
            f"and inside. Received: vocabulary_size={vocabulary_size}"
        )
    learned = learner.learn(
        # In an order that does not depend on that of the lines.
        sorted(counts.items()),
        vocabulary_size,
        special,
        # A piece that is met once is not worth a place.
        lower_thresh=2,
        max_unique_chars=len(characters),
    )
    characters |= {JOINER + c for c in characters}
    rest = [piece for piece in learned if piece not in special]
    # The search may end above the size. What is too much goes, the rarest
    # first; not a character, without which words could no longer be cut.
    longer = [piece for piece in rest if piece not in characters]
    gone = {*longer[vocabulary_size - needed :]}
    return [*special, *(piece for piece in rest if piece not in gone)]
