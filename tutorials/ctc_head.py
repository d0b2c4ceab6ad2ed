"""A layer that spells a sequence of vectors, one character or none for each."""

import keras
from keras import ops


@keras.saving.register_keras_serializable(package="tutorials")
class CTCHead(keras.layers.Layer):
    """Connectionist temporal classification: spells without knowing when.

        p(a | h) = prod_s softmax(h_s W + b)[a_s],
        P(y | h) = sum of p(a | h) over all a that are read as y

    A path a writes one character or a blank for each vector. It is read by
    writing a character once that is repeated, and then leaving out the blanks:
    `EE-E--T` is EET (Graves et al. 2006,
    https://www.cs.toronto.edu/~graves/icml_2006.pdf). So nobody has to say when
    each character is heard; but each must be heard behind the one in front of
    it. A text needs a vector for each character, and one more between two that
    are alike.

    Args:
        vocabulary_size: int. V, of the characters.
        blank: int. The id that stands for none.
        **kwargs: arguments of `keras.layers.Layer`: `name`, `dtype`, ...

    Call arguments:
        memory: float (B, S, D).

    Returns:
        Float (B, S, V), logits.
    """

    def __init__(self, vocabulary_size, blank=0, **kwargs):
        super().__init__(**kwargs)
        self.vocabulary_size, self.blank = vocabulary_size, blank

    def build(self, memory_shape):
        """Creates the projection."""
        self._projection = keras.layers.Dense(
            self.vocabulary_size, dtype=self.dtype_policy, name="projection"
        )
        self._projection.build(memory_shape)

    def call(self, memory):
        """Applies the layer; the class docstring lists the arguments."""
        return self._projection(memory)

    def log_probability(self, memory, lengths, ids):
        """Says how likely texts are.

        Args:
            memory: float (B, S, D).
            lengths: int32 (B,). Vectors of each row.
            ids: int32 (B, T), the texts, blanks behind their ends.

        Returns:
            Float (B,): log P(y | h), in nats; -inf where there are too few
            vectors for a text.
        """
        ids = ops.convert_to_tensor(ids, "int32")
        lengths = ops.convert_to_tensor(lengths, "int32")
        sizes = self._sizes(ids)
        nats = ops.ctc_loss(ids, self(memory), sizes, lengths, self.blank)
        alike = ops.logical_and(
            ids[:, 1:] == ids[:, :-1], ids[:, 1:] != self.blank
        )
        needed = sizes + ops.sum(ops.cast(alike, "int32"), 1)
        # What backends say of an impossible text lies between -700 and -inf.
        return ops.where(needed <= lengths, -nats, -float("inf"))

    def loss(self, memory, lengths, ids):
        """Says how unlikely the right texts are, for training.

        Args:
            memory: float (B, S, D).
            lengths: int32 (B,). Vectors of each row.
            ids: int32 (B, T), the texts, blanks behind their ends.

        Returns:
            Float: -log P of all texts, in nats, a character.
        """
        total = ops.sum(self.log_probability(memory, lengths, ids))
        count = ops.maximum(ops.sum(self._sizes(ids)), 1)
        return -total / ops.cast(count, total.dtype)

    def spell(self, memory, lengths):
        """Reads the likeliest path.

        Args:
            memory: float (B, S, D).
            lengths: int32 (B,). Vectors of each row.

        Returns:
            List of B lists of int.
        """
        paths = ops.convert_to_numpy(ops.argmax(self(memory), -1))
        return [
            read_path(path[:length], self.blank)
            for path, length in zip(
                paths, ops.convert_to_numpy(lengths), strict=True
            )
        ]

    def compute_output_shape(self, memory_shape):
        """Returns the shape of the logits."""
        return (*memory_shape[:-1], self.vocabulary_size)

    def get_config(self):
        """Returns the constructor's arguments."""
        return {
            **super().get_config(),
            "vocabulary_size": self.vocabulary_size,
            "blank": self.blank,
        }

    def _sizes(self, ids):
        """Returns how many characters each text has, int32 (B,)."""
        return ops.sum(ops.cast(ops.not_equal(ids, self.blank), "int32"), 1)


def read_path(path, blank=0):
    """Returns what a path is read as.

    Args:
        path: ints (S,).
        blank: int.

    Returns:
        List of int.

    Examples:
        >>> read_path([5, 5, 0, 5, 0, 0, 7])
        [5, 5, 7]
    """
    read, last = [], blank
    for symbol in map(int, path):
        if symbol not in (blank, last):
            read.append(symbol)
        last = symbol
    return read
