"""Cutting a word: its longest piece first, then the longest of the rest."""

JOINER = "##"


def cut_word(word, ids, unknown_id, longest):
    """Cuts a word from its beginning, as BERT does.

    Args:
        word: str, not empty.
        ids: {piece: id}; what goes on with a word begins with `##`.
        unknown_id: int. What a word is that cannot be cut to its end.
        longest: int. Characters of the longest piece.

    Returns:
        List of int.

    Examples:
        >>> from keras_attn.text.word_pieces import cut_word
        >>> ids = {"un": 1, "##l": 2, "##like": 3, "##ly": 4}
        >>> cut_word("unlikely", ids, 0, longest=6)
        [1, 3, 4]
        >>> cut_word("unlucky", ids, 0, longest=6)
        [0]
    """
    found, begin, mark = [], 0, ""
    while begin < len(word):
        for end in range(min(len(word), begin + longest), begin, -1):
            number = ids.get(mark + word[begin:end])
            if number is not None:
                break
        else:
            return [unknown_id]
        found.append(number)
        begin, mark = end, JOINER
    return found
