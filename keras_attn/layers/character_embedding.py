"""From the characters of a word to its vector."""

import keras
from keras import ops

from keras_attn import checks
from keras_attn.layers.quantized_parts import QuantizedParts


@keras.saving.register_keras_serializable(package="keras_attn")
class CharacterEmbedding(QuantizedParts, keras.layers.Layer):
    """Makes a vector of each word out of its characters.

        f[w] = max_i tanh(K[w] c[i : i + w] + b[w])
        y = concat(f[w] for w in kernel_sizes) W + b

    with c the vectors of a word's characters: a convolution for each size of
    window, and of each of its filters the largest answer (Kim et al. 2016,
    sec. 2.1, https://arxiv.org/abs/1508.06615). Beyond the ends of the word
    there are zeros, so that short words have windows too. A word that was never
    seen has a vector like those of the words that it looks like.

    Args:
        vocabulary_size: int >= 1. How many characters there are, `pad_id`
            included.
        hidden_dim: int >= 1. D, the width of the result.
        character_dim: int >= 1. Width of a character's vector. Default 32.
        kernel_sizes: tuple of int >= 1. Windows, in characters. Default
            (2, 3, 4).
        filters: int >= 1. Filters of each size. Default 64.
        pad_id: int. The id that is no character. Default 0.
        **kwargs: arguments of `keras.layers.Layer`: `name`, `dtype`, ...

    Call arguments:
        character_ids: int32 (B, T, C), the C first characters of each of T
            words, `pad_id` behind them.

    Returns:
        Float (B, T, D), with an implicit Keras mask that is False where there
        is no character; the vector of no word is 0. How far words are padded
        changes nothing.

    Raises:
        ValueError: arguments out of range, or ids of another rank or not
            integers.

    Examples:
        >>> layer = keras_attn.layers.CharacterEmbedding(30, 8)
        >>> words = np.array([[[3, 1, 20, 0], [4, 15, 7, 19]]])
        >>> tuple(layer(words).shape)
        (1, 2, 8)
    """

    def __init__(
        self,
        vocabulary_size,
        hidden_dim,
        character_dim=32,
        kernel_sizes=(2, 3, 4),
        filters=64,
        pad_id=0,
        **kwargs,
    ):
        checks.positive_int("vocabulary_size", vocabulary_size)
        checks.positive_int("hidden_dim", hidden_dim)
        checks.positive_int("character_dim", character_dim)
        checks.positive_int("filters", filters)
        if not isinstance(kernel_sizes, (list, tuple)) or not kernel_sizes:
            raise ValueError(
                "`kernel_sizes` must be a tuple of at least one integer. "
                f"Received: kernel_sizes={kernel_sizes!r}"
            )
        for size in kernel_sizes:
            checks.positive_int("kernel_sizes", size)
        if len(set(kernel_sizes)) < len(kernel_sizes):
            raise ValueError(
                "`kernel_sizes` must be different sizes. "
                f"Received: kernel_sizes={kernel_sizes!r}"
            )
        super().__init__(**kwargs)
        self.supports_masking = True
        self.vocabulary_size = vocabulary_size
        self.hidden_dim = hidden_dim
        self.character_dim = character_dim
        self.kernel_sizes = tuple(kernel_sizes)
        self.filters = filters
        self.pad_id = pad_id

    def build(self, character_ids_shape=None):
        """Creates the characters' vectors, the filters and W."""
        dtype = self.dtype_policy
        self._table = keras.layers.Embedding(
            self.vocabulary_size, self.character_dim, dtype=dtype, name="table"
        )
        self._table.build()
        self._windows = [
            keras.layers.Conv1D(
                self.filters,
                size,
                padding="same",
                activation="tanh",
                dtype=dtype,
                name=f"window_{size}",
            )
            for size in self.kernel_sizes
        ]
        for window in self._windows:
            window.build((None, None, self.character_dim))
        self._output_dense = keras.layers.Dense(
            self.hidden_dim, dtype=dtype, name="output"
        )
        self._output_dense.supports_masking = True
        self._output_dense.build(
            (None, None, self.filters * len(self._windows))
        )

    def call(self, character_ids):
        """Embeds words; the class docstring lists the arguments."""
        checks.rank("character_ids", character_ids, 3)
        checks.integers("character_ids", character_ids)
        there = ops.not_equal(character_ids, self.pad_id)[..., None]
        x = self._table(character_ids)
        x = ops.where(there, x, 0)
        rows, words, length = ops.shape(character_ids)
        x = ops.reshape(x, (rows * words, length, self.character_dim))
        least = -1.0  # tanh has no less
        parts = []
        for window in self._windows:
            found = ops.reshape(window(x), (rows, words, length, self.filters))
            parts.append(ops.max(ops.where(there, found, least), axis=2))
        y = self._output_dense(ops.concatenate(parts, axis=-1))
        return ops.where(ops.any(there, axis=2), y, 0)

    def compute_mask(self, character_ids, previous_mask=None):
        """Returns bool (B, T), False where a word has no character."""
        return ops.any(ops.not_equal(character_ids, self.pad_id), axis=-1)

    def compute_output_shape(self, character_ids_shape):
        """Returns the shape of the vectors."""
        return (*character_ids_shape[:2], self.hidden_dim)

    def get_config(self):
        """Returns the constructor's arguments."""
        return super().get_config() | {
            "vocabulary_size": self.vocabulary_size,
            "hidden_dim": self.hidden_dim,
            "character_dim": self.character_dim,
            "kernel_sizes": self.kernel_sizes,
            "filters": self.filters,
            "pad_id": self.pad_id,
        }
