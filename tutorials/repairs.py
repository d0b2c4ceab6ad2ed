"""Questions with a slip of the tongue, and what was meant.

Disfl-QA (Gupta et al. 2021, https://arxiv.org/abs/2106.04016): "What
profession does Irena Bajerska no Zbigniew Marek have?"
"""

import json

import corpora
from questions import cut

# What people say as they correct themselves; longer ones first.
_CUES = sorted(
    (
        tuple(cue.split())
        for cue in (
            "no wait|no sorry|oh sorry|oh no|or rather|or wait|or actually|"
            "no actually|no make that|make that|scratch that|i mean|i meant|"
            "no rather|no i mean|no i meant|no|sorry|wait|er|uh|um|rather|"
            "actually|instead"
        ).split("|")
    ),
    key=len,
    reverse=True,
)
_FEWEST = 3  # words of a question


def read_repairs(path):
    """Reads slips and their repairs.

    Args:
        path: path of a JSON file, plain or `.gz`: an object whose values have
            the two texts as `disfluent` and `original`.

    Returns:
        List of tuple (disfluent, original), each a list of str: the words, in
        lower case. Pairs without a word on a side are left out.

    Raises:
        CorpusError: no such pairs; the message names the file and the key.
    """
    try:
        content = json.loads("\n".join(corpora.read_lines(path)))
    except json.JSONDecodeError as error:
        raise corpora.CorpusError(f"{path} is not JSON: {error}.") from error
    if not isinstance(content, dict):
        raise corpora.CorpusError(
            f"{path} must hold an object of pairs. "
            f"Received: {type(content).__name__}"
        )
    pairs = []
    for key, pair in content.items():
        try:
            sides = pair["disfluent"].lower(), pair["original"].lower()
        except (AttributeError, KeyError, TypeError) as error:
            raise corpora.CorpusError(
                f"{key!r} of {path} must have a text as `disfluent` and one as "
                f"`original`. Received: {str(pair)[:60]}"
            ) from error
        disfluent, original = map(cut, sides)
        if disfluent and original:
            pairs.append((disfluent, original))
    if not pairs:
        raise corpora.CorpusError(f"{path}: there is no pair of texts.")
    return pairs


def behind_the_cue(words):
    """Repairs by rule: what stands behind the last cue, such as *no wait*.

    Args:
        words: list of str, a disfluent question in lower case.

    Returns:
        List of str; all words where there is no cue, or too little behind it.

    Examples:
    >>> " ".join(behind_the_cue("who did no wait what did he see".split()))
    'what did he see'
    """
    for place in range(len(words) - 1, 0, -1):
        for cue in _CUES:
            begin = place - len(cue) + 1
            if begin >= 0 and tuple(words[begin : place + 1]) == cue:
                rest = words[place + 1 :]
                rest = rest[1:] if rest[:1] == [","] else rest
                return rest if len(rest) >= _FEWEST else words
    return words


def exact_match(found, right):
    """Returns the share of texts that are right, punctuation left aside.

    Args:
        found: list of lists of str, in lower case.
        right: list of lists of str, likewise.

    Returns:
        Float in [0, 1].

    Raises:
        ValueError: not as many on both sides, or none.

    Examples:
    >>> exact_match([["who", "?"], ["a"]], [["who"], ["b"]])
    0.5
    """
    if len(found) != len(right) or not right:
        raise ValueError(
            "`found` must have as many texts as `right`, at least one. "
            f"Received: {len(found)} and {len(right)}"
        )
    same = sum(
        _bare(one) == _bare(other)
        for one, other in zip(found, right, strict=True)
    )
    return same / len(right)


def _bare(words):
    return [word for word in words if any(map(str.isalnum, word))]
