"""BERT's text cleaning and word splitting."""

import unicodedata

# Unicode white space; of the control characters, only tab, newline and carriage
# return.
_SPACES = frozenset(
    "\t\n\r \xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007"
    "\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000"
)
_DROPPED = ("Cc", "Cf", "Co")
# Blocks of Chinese characters, as BERT lists them: each character is a word.
# Kana and Hangul words have several characters, so they are not included.
_CHINESE = (
    (0x4E00, 0x9FFF),
    (0x3400, 0x4DBF),
    (0x20000, 0x2A6DF),
    (0x2A700, 0x2B73F),
    (0x2B740, 0x2B81F),
    (0x2B920, 0x2CEAF),
    (0xF900, 0xFAFF),
    (0x2F800, 0x2FA1F),
)


def cleaned_words(text, lowercase, strip_accents, split_chinese):
    """Splits a text at white space and around punctuation.

    Control characters are removed, and accents if `strip_accents`. Every
    punctuation character and every ASCII symbol is a separate word.

    Args:
        text: str.
        lowercase: bool.
        strip_accents: bool.
        split_chinese: bool. Whether each Chinese character is a word.

    Returns:
        List of str, none empty.

    Examples:
        >>> from keras_attn.text.word_cleaning import cleaned_words
        >>> cleaned_words("Où, 5$?", True, True, True)
        ['ou', ',', '5', '$', '?']
    """
    text = "".join(map(_clean, text))
    if split_chinese:
        text = "".join(f" {c} " if _is_chinese(c) else c for c in text)
    if strip_accents:
        text = "".join(
            c
            for c in unicodedata.normalize("NFD", text)
            if unicodedata.category(c) != "Mn"
        )
    if lowercase:
        # Per character: on a whole word, Python lowers a final sigma
        # differently.
        text = "".join(c.lower() for c in text)
    words, word = [], []
    for character in text:
        is_punctuation = _is_punctuation(character)
        if word and (is_punctuation or character in _SPACES):
            words.append("".join(word))
            word = []
        if is_punctuation:
            words.append(character)
        elif character not in _SPACES:
            word.append(character)
    if word:
        words.append("".join(word))
    return words


def _clean(character):
    if character in _SPACES:
        return " "
    if character == "\ufffd" or unicodedata.category(character) in _DROPPED:
        return ""
    return character


def _is_chinese(character):
    return any(low <= ord(character) <= high for low, high in _CHINESE)


def _is_punctuation(character):
    if character.isascii():
        return "!" <= character <= "~" and not character.isalnum()
    return unicodedata.category(character)[0] == "P"
