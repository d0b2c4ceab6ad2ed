"""What greedy search and sampling share: sequences that grow alone."""

from keras import ops

from keras_attn.decoding.loop import Choice
from keras_attn.decoding.sequences import (
    begin,
    decoded,
    grow,
    lengthened,
)
from keras_attn.decoding.strategy import Live, Strategy


class OneByOne(Strategy):
    """Adds to each sequence a token that it `pick`s.

    Abstract: a strategy defines `pick`. Its book is `Sequences`.
    """

    def pick(self, log_probs, step, draws):
        """Picks the next tokens.

        Args:
            log_probs: float32 (B, k, V), -inf where a token is not allowed.
            step: int32 (), how many tokens there are already.
            draws: as for `choose`.

        Returns:
            int32 (B, k).
        """
        raise NotImplementedError(f"{type(self).__name__} must define pick")

    def begin(self, sources, length, task):
        """Opens a book of empty sequences."""
        return begin(sources, self.width, length, task.pad_id)

    def lengthened(self, book, length, task):
        """Returns the book, its sequences with `length` slots."""
        tokens = lengthened(book.tokens, length, task.pad_id)
        return book._replace(tokens=tokens)

    def alive(self, book):
        """Says which sequences are continued, bool (B, k)."""
        return book.growing

    def choose(self, book, step, log_probs, draws, task):
        """Adds a token to every sequence that grows."""
        picked = self.pick(log_probs, step, draws)
        return Choice(
            *grow(book, step, log_probs, picked, task.pad_id, task.end_id)
        )

    def decoded(self, book, task):
        """Returns all sequences as `Decoded` of tensors."""
        return decoded(book.tokens, book.scores, book.lengths, task.pad_id)

    def live(self, book, step, task):
        """Returns those that grow, as `Live`."""
        growing = ops.logical_and(book.growing, step < task.max_length)
        origins = ops.arange(self.width, dtype="int32")[None]
        return Live(
            ops.where(growing[..., None], book.tokens, task.pad_id),
            ops.where(growing, book.scores, -float("inf")),
            ops.where(growing, book.lengths, 0),
            ops.tile(origins, (growing.shape[0], 1)),
        )
