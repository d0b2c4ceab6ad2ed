"""Words and their characters as ids."""

import collections
import json

import numpy as np

PAD, UNKNOWN = 0, 1
LONGEST_WORD = 20


class WordTable:
    """Numbers the words, the characters and the tags of a training set.

    A word is looked up in lower case; its characters keep theirs. Ids begin
    with that of padding (0) and of what is unknown (1); tags have padding only.

    Args:
        words: list of str, those that have an id of their own.
        characters: list of str.
        tags: list of str.
    """

    def __init__(self, words, characters, tags):
        self.words, self.characters, self.tags = words, characters, tags
        self._word_ids = {word: i for i, word in enumerate(words, 2)}
        self._character_ids = {c: i for i, c in enumerate(characters, 2)}
        self._tag_ids = {tag: i for i, tag in enumerate(tags, 1)}

    @classmethod
    def of_sentences(cls, sentences, least=2):
        """Makes the table of tagged sentences.

        Args:
            sentences: list of lists of (word, tag).
            least: int. How often a word must occur to have an id of its own.
        """
        words, characters, tags = (collections.Counter() for _ in range(3))
        for sentence in sentences:
            for word, tag in sentence:
                words[word.lower()] += 1
                characters.update(word)
                tags[tag] += 1
        return cls(
            sorted(word for word, count in words.items() if count >= least),
            sorted(characters),
            sorted(tags),
        )

    @property
    def sizes(self):
        """Returns how many ids words, characters and tags have."""
        return (
            len(self.words) + 2,
            len(self.characters) + 2,
            len(self.tags) + 1,
        )

    def encode(self, sentences, length=None):
        """Returns sentences as the inputs of an `Encoder` with characters.

        Args:
            sentences: list of lists of str.
            length: int. Words that a row has room for; default: the most that
                a sentence has.

        Returns:
            Dict of int32: `token_ids` (B, T), `character_ids` (B, T, 20).
        """
        length = length or max(map(len, sentences))
        tokens = np.full((len(sentences), length), PAD, "int32")
        characters = np.full((*tokens.shape, LONGEST_WORD), PAD, "int32")
        for row, sentence in enumerate(sentences):
            for place, word in enumerate(sentence):
                tokens[row, place] = self._word_ids.get(word.lower(), UNKNOWN)
                ids = [
                    self._character_ids.get(c, UNKNOWN)
                    for c in word[:LONGEST_WORD]
                ]
                characters[row, place, : len(ids)] = ids
        return {"token_ids": tokens, "character_ids": characters}

    def labels(self, sentences, length=None):
        """Returns the tags of tagged sentences as int32 (B, T)."""
        length = length or max(map(len, sentences))
        ids = np.full((len(sentences), length), PAD, "int32")
        for row, sentence in enumerate(sentences):
            ids[row, : len(sentence)] = [
                self._tag_ids.get(tag, PAD) for _, tag in sentence
            ]
        return ids

    def names(self, ids, lengths):
        """Returns rows of tag ids as lists of tags."""
        return [
            [self.tags[i - 1] for i in row[:length]]
            for row, length in zip(ids, lengths, strict=True)
        ]

    def save(self, path):
        """Writes the table to a JSON file."""
        content = vars(self)
        names = "words", "characters", "tags"
        text = json.dumps({name: content[name] for name in names})
        path.write_text(text, encoding="utf-8")

    @classmethod
    def load(cls, path):
        """Reads a table that `save` wrote."""
        return cls(**json.loads(path.read_text(encoding="utf-8")))
