"""Greedy longest-match splitting of a word into pieces."""

JOINER = "##"


def cut_word(word, ids, unknown_id, longest):
    """Splits a word into pieces from the left, as in BERT.

    Args:
        word: str, not empty.
        ids: {piece: id}; pieces that continue a word begin with `##`.
        unknown_id: int. Returned alone if the word cannot be split.
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
