"""Capital letters for a model whose corpus was written without them."""

import re


def known_capitals(tokenizer):
    """Finds the words with capitals of a vocabulary that has hardly any.

    A corpus with sentences or names as people write them has pieces in which a
    capital stands in front of a small letter, such as `▁The`. One in small
    letters may still have a word that is a single capital, such as *I*.

    Args:
        tokenizer: `keras_attn.text.SubwordTokenizer`.

    Returns:
        Set of str; None where the vocabulary has more capitals than those.
    """
    pieces = tokenizer.pieces(list(range(tokenizer.vocabulary_size)))
    # Special pieces and bytes have names, such as <0xC3>, not letters.
    words = {
        piece.strip("▁")
        for piece in pieces
        if not re.fullmatch("<.+>", piece) and piece != piece.lower()
    }
    return None if any(len(word) > 1 for word in words) else words


def fold(line, capitals):
    """Writes a line in small letters, but for some words.

    Args:
        line: str.
        capitals: set of str, words to leave as they are.

    Returns:
        str.
    """
    return re.sub(
        r"\w+",
        lambda word: word[0] if word[0] in capitals else word[0].lower(),
        line,
    )
