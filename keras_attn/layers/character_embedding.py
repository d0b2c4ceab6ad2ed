"""Word vectors computed from characters."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import keras
from keras import ops

from keras_attn import checks
from keras_attn.backend import TorchNames, reduce_max
from keras_attn.layers.checked_call import CheckedCall
from keras_attn.layers.id_range import as_ids
from keras_attn.layers.quantized_parts import QuantizedParts
from keras_attn.typing import Nest, Shape, Tensor, TensorLike


@keras.saving.register_keras_serializable(package="keras_attn")
class CharacterEmbedding(
    QuantizedParts, CheckedCall, TorchNames, keras.layers.Layer
):
    """Computes word vectors from characters by convolution (CharCNN).

        f[w] = max_i tanh(K[w] c[i : i + w] + b[w])
        y = concat(f[w] for w in kernel_sizes) W + b

    with c the character vectors of a word: one convolution per kernel size,
    then the maximum of each filter over the word (Kim et al. 2016, sec. 2.1,
    https://arxiv.org/abs/1508.06615). Words are zero-padded at both ends, so
    words shorter than the kernel work too. Unseen words get vectors similar to
    those of words with similar spelling.

    Args:
        vocabulary_size: int >= 1. Number of characters, including `pad_id`.
        hidden_dim: int >= 1. D, the width of the output.
        character_dim: int >= 1. Width of the character vectors. Default 32.
        kernel_sizes: tuple of int >= 1. Kernel sizes, in characters. Default
            (2, 3, 4).
        filters: int >= 1. Filters per kernel size. Default 64.
        pad_id: int. The padding id. Default 0.
        **kwargs: arguments of `keras.layers.Layer`: `name`, `dtype`, ...

    Call arguments:
        character_ids: int32 (B, T, C), the first C characters of each of T
            words, padded with `pad_id`.

    Returns:
        Float (B, T, D), with an implicit Keras mask that is False for words
        without characters, whose vectors are 0. The amount of padding does not
        affect the result.

    Raises:
        ValueError: an argument is out of range, or `character_ids` are not
            integers of rank 3.

    Examples:
        >>> layer = keras_attn.layers.CharacterEmbedding(30, 8)
        >>> words = np.array([[[3, 1, 20, 0], [4, 15, 7, 19]]])
        >>> tuple(layer(words).shape)
        (1, 2, 8)
    """

    _tensors = ("character_ids",)

    def __init__(
        self,
        vocabulary_size: int,
        hidden_dim: int,
        character_dim: int = 32,
        kernel_sizes: Sequence[int] = (2, 3, 4),
        filters: int = 64,
        pad_id: int = 0,
        **kwargs: Any,
    ) -> None:
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
                "`kernel_sizes` must not repeat a size. "
                f"Received: kernel_sizes={kernel_sizes!r}"
            )
        checks.token_id("pad_id", pad_id, 0, vocabulary_size - 1)
        # Half precision would round ids that arrive as floats.
        super().__init__(autocast=False, **kwargs)
        self.supports_masking = True
        self.vocabulary_size = vocabulary_size
        self.hidden_dim = hidden_dim
        self.character_dim = character_dim
        self.kernel_sizes: tuple[int, ...] = tuple(kernel_sizes)
        self.filters = filters
        self.pad_id = pad_id

    def build(self, character_ids_shape: Shape | None = None) -> None:
        """Creates the character embedding, the filters and W."""
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
        # The default of a `Dense` as of Keras 3.15.1.
        self._output_dense.supports_masking = True
        self._output_dense.build(
            (None, None, self.filters * len(self._windows))
        )

    def call(self, character_ids: TensorLike) -> Tensor:
        """Embeds words; the class docstring lists the arguments."""
        checks.rank("character_ids", character_ids, 3)
        character_ids = as_ids(
            "character_ids", character_ids, self.vocabulary_size
        )
        if 0 in character_ids.shape:
            # No words, or words without characters.
            shape = (*ops.shape(character_ids)[:2], self.hidden_dim)
            return ops.zeros(shape, self.compute_dtype)
        token_mask = ops.not_equal(character_ids, self.pad_id)[..., None]
        x = self._table(character_ids)
        x = ops.where(token_mask, x, 0)
        rows, words, length = ops.shape(character_ids)
        x = ops.reshape(x, (rows * words, length, self.character_dim))
        lowest = -1.0  # lower bound of tanh
        parts = []
        for window in self._windows:
            features = window(x)
            features = ops.reshape(
                features, (rows, words, length, self.filters)
            )
            features = ops.where(token_mask, features, lowest)
            parts.append(reduce_max(features, axis=2))
        y = self._output_dense(ops.concatenate(parts, axis=-1))
        return ops.where(ops.any(token_mask, axis=2), y, 0)

    if TYPE_CHECKING:
        __call__ = call

    def compute_mask(
        self, character_ids: TensorLike, previous_mask: Nest | None = None
    ) -> Any:
        """Returns bool (B, T), False for words without characters."""
        return ops.any(ops.not_equal(character_ids, self.pad_id), axis=-1)

    def compute_output_shape(self, character_ids_shape: Shape) -> Shape:
        """Returns the shape of the vectors."""
        return (*character_ids_shape[:2], self.hidden_dim)

    def get_config(self) -> dict[str, Any]:
        """Returns the constructor's arguments."""
        return super().get_config() | {
            "vocabulary_size": self.vocabulary_size,
            "hidden_dim": self.hidden_dim,
            "character_dim": self.character_dim,
            "kernel_sizes": self.kernel_sizes,
            "filters": self.filters,
            "pad_id": self.pad_id,
        }
