"""Two taggers that know no context: what a model must beat."""

import collections


class SuffixTagger:
    """Gives each word its most frequent tag; unknown ones go by their end.

    Args:
        sentences: list of lists of (word, tag), to learn from.
        longest: int. Most letters of an ending; 0: an unknown word gets the
            tag that is most frequent of all.
    """

    def __init__(self, sentences, longest=0):
        self.longest = longest
        counts = collections.defaultdict(collections.Counter)
        endings = collections.defaultdict(collections.Counter)
        for sentence in sentences:
            for word, tag in sentence:
                counts[word][tag] += 1
        for word, found in counts.items():
            # Each word once: unknown words are like rare ones.
            for size in range(longest + 1):
                endings[_ending(word, size)].update(found.keys())
        self._words, self._endings = (
            {key: found.most_common(1)[0][0] for key, found in table.items()}
            for table in (counts, endings)
        )

    def __call__(self, words):
        """Returns the tags of a list of words."""
        return [self._tag(word) for word in words]

    def _tag(self, word):
        if word in self._words:
            return self._words[word]
        for size in range(self.longest, -1, -1):
            ending = _ending(word, size)
            if ending in self._endings:
                return self._endings[ending]
        raise AssertionError("the empty ending is always known")


def _ending(word, size):
    """Returns the last letters, and whether a capital is in front."""
    if not size:
        return ""
    return word[-size:].lower(), word[:1].isupper()
