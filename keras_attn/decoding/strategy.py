"""What all strategies share: which tokens they may choose from."""

import numbers

from keras_attn.decoding.constraints import Constraints


class Strategy:
    """Chooses the tokens of a sequence, one after the other.

    Abstract: a strategy defines `search`, and `get_config` where it has
    arguments of its own.

    Args:
        banned_tokens: iterable of int. Ids that are never generated, besides
            pad and start.
        min_length: int >= 0. The fewest tokens of a sequence, its end token
            included: before that the end token is not generated.
    """

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

    def search(self, model, inputs, max_length, prefix=None, draws=None):
        """Runs the whole search as a function of tensors.

        Args:
            model: what offers the decoding protocol.
            inputs: nest of tensors for its `start_decoding`.
            max_length: int. L, the most tokens generated, end included.
            prefix: int32 (B, L), the tokens that each sequence begins with,
                `pad_id` behind them; None: nothing is forced.
            draws: what the strategy's `draw` returned, as a tensor.

        Returns:
            `Decoded` of tensors.
        """
        raise NotImplementedError(f"{type(self).__name__} must define search")

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

    def constraints(self, model, prefix):
        """Returns the `Constraints` under which a model is searched."""
        return Constraints(
            model.pad_id,
            model.start_id,
            model.end_id,
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
