"""What all strategies share: which tokens they may choose from."""

import numbers
from typing import Any, NamedTuple

from keras_attn.decoding.constraints import Constraints
from keras_attn.decoding.loop import run
from keras_attn.decoding.protocol import Decoded


class Live(NamedTuple):
    """Holds the sequences of each source that a search continues.

    Args:
        tokens: int32 (B, k, L), `pad_id` behind what there is.
        scores: float32 (B, k), their log-probabilities in nats; -inf: there is
            no such sequence.
        lengths: int32 (B, k), tokens so far; 0 where there is no sequence.
        origins: int32 (B, k), which of the k of the step before each of them
            continues.

    Examples:
        >>> keras_attn.decoding.Live(None, None, None, None)._fields
        ('tokens', 'scores', 'lengths', 'origins')
    """

    tokens: Any
    scores: Any
    lengths: Any
    origins: Any


class Strategy:
    """Chooses the tokens of a sequence, one after the other.

    Abstract: a strategy keeps `width` sequences of each source in a book, a
    nest of tensors. It defines the methods from `begin` to `live`, which are
    functions of tensors, and `get_config` where it has arguments of its own.

    `width` is k. A strategy that `reorders` lets sequences go on from others of
    their source (`Choice.origins`): they share the slots of one cache, of which
    nothing is then copied. Otherwise each has a cache of its own, of which it
    alone is a query.

    Args:
        banned_tokens: iterable of int. Ids that are never generated, besides
            pad and start.
        min_length: int >= 0. The fewest tokens of a sequence, its end token
            included: before that the end token is not generated.
    """

    width = 1
    reorders = False

    def __init__(self, banned_tokens=(), min_length=0):
        banned_tokens = tuple(banned_tokens)
        for token in banned_tokens:
            if not whole(token) or token < 0:
                raise ValueError(
                    "`banned_tokens` must hold token ids, integers >= 0. "
                    f"Received: {token!r}"
                )
        if not whole(min_length) or min_length < 0:
            raise ValueError(
                "`min_length` must be an integer >= 0. "
                f"Received: min_length={min_length!r}"
            )
        self.banned_tokens = tuple(int(token) for token in banned_tokens)
        self.min_length = int(min_length)

    def begin(self, sources, length, task):
        """Opens a book.

        Args:
            sources: int. B.
            length: int. Slots of its sequences.
            task: `Task`.

        Returns:
            Nest of tensors.
        """
        raise NotImplementedError(f"{type(self).__name__} must define begin")

    def lengthened(self, book, length, task):
        """Returns the book, its sequences with `length` slots, more or none."""
        raise NotImplementedError(
            f"{type(self).__name__} must define lengthened"
        )

    def alive(self, book):
        """Says which sequences are continued, bool (B, k)."""
        raise NotImplementedError(f"{type(self).__name__} must define alive")

    def choose(self, book, step, log_probs, draws, task):
        """Makes one more token of every sequence out of its chances.

        Args:
            book: nest of tensors.
            step: int32 (), how many tokens there are already.
            log_probs: float32 (B, k, V), of the next token; -inf where there
                can be none.
            draws: what `draw` returned, as a tensor, or None.
            task: `Task`.

        Returns:
            `keras_attn.decoding.loop.Choice`.
        """
        raise NotImplementedError(f"{type(self).__name__} must define choose")

    def decoded(self, book, task):
        """Returns the sequences of a book as `Decoded` of tensors."""
        raise NotImplementedError(f"{type(self).__name__} must define decoded")

    def live(self, book, step, task):
        """Returns those of a book that are continued, as `Live`.

        Args:
            book: nest of tensors.
            step: int32 (), how many tokens they have.
            task: `Task`.
        """
        raise NotImplementedError(f"{type(self).__name__} must define live")

    def search(
        self, model, inputs, max_length, prefix=None, draws=None, weights=()
    ):
        """Runs the whole search as a function of tensors.

        Args:
            model: what offers the decoding protocol.
            inputs: nest of tensors for its `start_decoding`.
            max_length: int. L, the most tokens generated, end included.
            prefix: int32 (B, L), the tokens that each sequence begins with,
                `pad_id` behind them; None: nothing is forced.
            draws: what the strategy's `draw` returned, as a tensor.
            weights: what the model's `prepare_weights` returned, or ().

        Returns:
            `Decoded` of tensors.
        """
        return Decoded(
            *run(self, model, inputs, max_length, prefix, draws, weights)
        )

    def draw(self, inputs, max_length, pad_id):
        """Draws what the search leaves to chance, before it starts.

        Args:
            inputs: nest of NumPy arrays, one row a source.
            max_length: int. L.
            pad_id: int.

        Returns:
            NumPy array with one row a source, or None: nothing is.
        """
        return None

    def program_config(self):
        """Returns what a compiled search depends on, a part of the config."""
        return self.get_config()

    def constraints(self, task, prefix):
        """Returns the `Constraints` under which a model is searched."""
        return Constraints(
            task.pad_id,
            task.start_id,
            task.end_id,
            self.banned_tokens,
            self.min_length,
            prefix,
        )

    def get_config(self):
        """Returns the constructor's arguments."""
        return {
            "banned_tokens": list(self.banned_tokens),
            "min_length": self.min_length,
        }

    @classmethod
    def from_config(cls, config):
        """Makes the strategy from its config."""
        return cls(**config)


def whole(value):
    """Says whether a value is an integer, and no bool."""
    return isinstance(value, numbers.Integral) and not isinstance(value, bool)


def real(value):
    """Says whether a value is a real number, and no bool."""
    return isinstance(value, numbers.Real) and not isinstance(value, bool)
