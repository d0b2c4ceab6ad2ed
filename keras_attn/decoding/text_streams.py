"""Texts of a search while its tokens are still generated."""

from collections.abc import Sequence
from typing import Any

from keras_attn import checks
from keras_attn.typing import Tensor

_REPLACEMENT = "\ufffd"
# A tokenizer may remove spaces around them, such as
# `clean_up_tokenization_spaces` of Hugging Face.
_CLEANED = " ' ", " n't", " 'm", " 's", " 've", " 're"
# Tokenizers with tokens of bytes decode a run of them as a whole.
_BYTE = "<0xE2>"


class TextStreams:
    """The texts of all sequences of a search, as far as they are decided.

    Args:
        tokenizer: object with `decode`.
        stop_strings: tuple of str.
        end_ids: tuple of int.
        reorders: bool. Whether hypotheses can extend each other.
    """

    def __init__(
        self,
        tokenizer: Any,
        stop_strings: tuple[str, ...],
        end_ids: tuple[int, ...],
        reorders: bool,
    ) -> None:
        self._tokenizer = tokenizer
        self._stop_strings = stop_strings
        self._end_ids = end_ids
        self._reorders = reorders
        self._undecided = {*stop_strings, *_CLEANED}
        vocabulary = getattr(tokenizer, "vocabulary", ())
        self._bytes = [vocabulary.index(_BYTE)] if _BYTE in vocabulary else []
        self._size = getattr(tokenizer, "vocabulary_size", None)
        self._emitted: Any = None

    def new(self, tokens: Tensor, lengths: Tensor, active: Any) -> list[Any]:
        """Returns the text that a step has decided.

        Args:
            tokens: NumPy int32 (B, t, L), as in `StreamedToken`.
            lengths: NumPy int32 (B, t).
            active: `ActiveHypotheses` of NumPy arrays.

        Returns:
            List of B lists of t str.
        """
        if self._emitted is None:
            self._emitted = [[""] * len(row) for row in lengths]
        return [
            [
                self._added(row, index, text)
                for index, text in enumerate(
                    self._texts(tokens[row], lengths[row], active, row)
                )
            ]
            for row in range(len(tokens))
        ]

    def _texts(self, tokens, lengths, active, row):
        """Returns the decided text of each sequence of a row."""
        going = active.lengths[row]
        if not self._reorders:
            return [
                self._decided(sequence[:length])
                if left
                else self._whole(sequence[:length])
                for sequence, length, left in zip(
                    tokens, lengths, going, strict=True
                )
            ]
        found = [
            self._whole(sequence[:length])
            for sequence, length in zip(tokens, lengths, strict=True)
        ]
        if not going.any():
            return found
        # What all hypotheses that can win have in common.
        found = [text for text, n in zip(found, lengths, strict=True) if n]
        found += [
            self._decided(sequence[:length])
            for sequence, length in zip(active.tokens[row], going, strict=True)
            if length
        ]
        return [_common(found)] * len(lengths)

    def _added(self, row, index, text):
        """Returns what a text adds to the one emitted so far."""
        before = self._emitted[row][index]
        if text and not text.startswith(before):
            raise ValueError(
                "`tokenizer` must not change the text of tokens when others "
                f"follow. Received: {checks.shown(text)} after "
                f"{checks.shown(before)}"
            )
        if text:
            self._emitted[row][index] = text
        return text[len(before) :]

    def _decoded(self, ids):
        ids = [number for number in ids if number >= 0]
        if self._size is not None:
            ids = [number for number in ids if number < self._size]
        return self._tokenizer.decode(ids) if ids else ""

    def _whole(self, tokens):
        """Returns the text of a sequence that has ended."""
        text = self._decoded(tokens.tolist())
        if len(tokens) and tokens[-1] in self._end_ids:
            return text
        starts = [text.find(string) for string in self._stop_strings]
        starts = [start for start in starts if start >= 0]
        return text[: min(starts)] if starts else text

    def _decided(self, tokens):
        """Returns the text that further tokens cannot change."""
        ids = tokens.tolist()
        text = self._decoded(ids)
        if self._bytes:
            longer = self._decoded(ids + self._bytes)
            text = _common([text, longer])
        # It may be a part of a character.
        text = text.rstrip(_REPLACEMENT)
        return text[: len(text) - _open(text, self._undecided)]


def _common(texts: list[str]) -> str:
    """Returns the longest beginning that all texts have."""
    first, last = min(texts), max(texts)
    for index, character in enumerate(first):
        if index >= len(last) or last[index] != character:
            return first[:index]
    return first


def _open(text: str, strings: Sequence[str] | set[str]) -> int:
    """Returns the length of the longest beginning of a string at the end."""
    longest = 0
    for string in strings:
        for length in range(min(len(string) - 1, len(text)), longest, -1):
            if text.endswith(string[:length]):
                longest = length
                break
    return longest
