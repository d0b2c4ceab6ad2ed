"""Learning a WordPiece vocabulary with tensorflow-text."""

from keras_attn.text import _tensorflow
from keras_attn.text.word_pieces import JOINER


def learn_word_pieces(counts, vocabulary_size, special):
    """Learns a WordPiece vocabulary.

    Args:
        counts: {word: number of occurrences}.
        vocabulary_size: int. Maximum number of pieces.
        special: list of str, the special tokens, which come first.

    Returns:
        List of str.

    Raises:
        ValueError: no words, or a size that is too small for the characters.
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
            "special tokens and each character, at the start of a word and "
            f"inside one. Received: vocabulary_size={vocabulary_size}"
        )
    learned = learner.learn(
        # Sorted, so that the result does not depend on the order of the lines.
        sorted(counts.items()),
        vocabulary_size,
        special,
        # Leave out pieces that occur once.
        lower_thresh=2,
        max_unique_chars=len(characters),
    )
    characters |= {JOINER + c for c in characters}
    rest = [piece for piece in learned if piece not in special]
    # The learner may exceed the size (as of tensorflow-text 2.21.1). The rarest
    # pieces are dropped, but no single characters, which are needed to split
    # any word.
    longer = [piece for piece in rest if piece not in characters]
    gone = {*longer[vocabulary_size - needed :]}
    return [*special, *(piece for piece in rest if piece not in gone)]
