"""Answers found without any network: what a model must beat."""

import collections


class FrequentPlace:
    """Answers with the place that was right most often in training.

    Args:
        questions: list of `Question`, to learn from; those that begin with the
            same word are counted together.
    """

    def __init__(self, questions):
        counts = collections.defaultdict(collections.Counter)
        for question in questions:
            counts[question.asked[0]][question.span] += 1
        self._best = {
            word: found.most_common(1)[0][0] for word, found in counts.items()
        }

    def __call__(self, question):
        """Returns (first, last), or None for no answer."""
        span = self._best.get(question.asked[0])
        if span is not None and span[1] >= len(question.passage):
            return None
        return span


class LikeliestSentence:
    """Answers from the sentence that has most words of the question.

    Of that sentence it takes the longest run of words that the question does
    not have. It never says that there is no answer.

    Args:
        common: list of str. Words that a run may hold all the same, such as
            articles. Default: "the", "my", "our", "his", "her".
    """

    def __init__(self, common=("the", "my", "our", "his", "her")):
        self._common = frozenset(common)

    def __call__(self, question):
        """Returns (first, last); None where the sentence has no other word."""
        asked = set(question.asked) - self._common
        best = max(
            _sentences(question.passage),
            key=lambda s: len(
                asked.intersection(question.passage[s[0] : s[1]])
            ),
        )
        runs, run = [], []
        for place in range(*best):
            if question.passage[place] in asked:
                runs, run = [*runs, run], []
            else:
                run.append(place)
        longest = max([*runs, run], key=len)
        return (longest[0], longest[-1]) if longest else None


class KnownAnswer:
    """Answers with the longest words that answered such a question before.

    Args:
        questions: list of `Question`, to learn from; those that begin with the
            same word count as such.
    """

    def __init__(self, questions):
        self._known = collections.defaultdict(set)
        for question in questions:
            if question.span is not None:
                first, last = question.span
                words = question.passage[first : last + 1]
                self._known[question.asked[0]].add(_key(words))
        self._longest = max(
            (len(key) for keys in self._known.values() for key in keys),
            default=0,
        )

    def __call__(self, question):
        """Returns (first, last), or None where no words are known."""
        known, words = self._known[question.asked[0]], question.passage
        for length in range(min(self._longest, len(words)), 0, -1):
            for first in range(len(words) - length + 1):
                if _key(words[first : first + length]) in known:
                    return first, first + length - 1
        return None


def _key(words):
    return tuple(word.lower() for word in words)


def _sentences(words):
    """Returns (first, past the last) of each sentence, without its full stop.

    A passage without full stops is one sentence.
    """
    found, first = [], 0
    for place, word in enumerate([*words, "."]):
        if word == ".":
            if place > first:
                found.append((first, place))
            first = place + 1
    return found or [(0, len(words))]
