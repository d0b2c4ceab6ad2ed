"""A recurrent decoder that looks at a picture: show, attend and tell."""

import keras
from keras import ops
from picture_grid import PictureGrid

from keras_attn.models import RecurrentSeq2Seq
from keras_attn.models.input_checks import check_ids
from keras_attn.ops import positions_from_mask


@keras.saving.register_keras_serializable(package="tutorials")
class Captioner(RecurrentSeq2Seq):
    """Says what a picture shows.

        a = PictureGrid(picture)                      S places, D features
        s[0] = tanh(mean(a) W)                        and of an LSTM c[0] too
        logits: those of `RecurrentSeq2Seq`, with a in the place of h

    Xu et al. 2015, https://arxiv.org/abs/1502.03044. All that comes behind the
    grid is that of `keras_attn.models.RecurrentSeq2Seq`: cells, attention, soft
    or hard, searches, alignment.

    Args:
        vocabulary_size: int. V.
        picture_shape: tuple of int (H, W, C), that of the pictures.
        channels: int. Channels of the first convolution of the grid.
        **kwargs: arguments of `RecurrentSeq2Seq`, the vocabularies and
            `bidirectional` left out.

    Call arguments:
        inputs: pair of (B, H, W, C) pictures, 0 to 255, and int32 (B, T) target
            ids, the target beginning with `start_id`.
        training: bool. Whether dropout acts.

    Returns:
        Float (B, T, V): logits of the token after each target token.

    Raises:
        ValueError: arguments out of range; pictures of another shape; ids that
            cannot be; different numbers of rows.
    """

    def __init__(self, vocabulary_size, picture_shape, channels=16, **kwargs):
        super().__init__(None, vocabulary_size, **kwargs)
        self.picture_shape = tuple(picture_shape)
        self.channels = channels
        dtype = self.dtype_policy
        self.picture_grid = PictureGrid(
            self.hidden_dim, channels, dtype=dtype, name="grid"
        )
        self.picture_grid.build((None, *self.picture_shape))
        self._first = [
            keras.layers.Dense(
                self.hidden_dim,
                activation="tanh",
                dtype=dtype,
                name=f"first_{i}",
            )
            for i in range(self.num_layers * (2 if self.cell == "lstm" else 1))
        ]
        for layer in self._first:
            layer.build((None, self.hidden_dim))

    @property
    def grid(self):
        """Tuple of int: rows and columns of places."""
        return self.picture_grid.grid

    def encode(self, pictures, training=None):
        """Reads pictures.

        Args:
            pictures: (B, H, W, C), 0 to 255.
            training: bool. Not used.

        Returns:
            Memory: float (B, S, D), and positions, int32 (B, S); and the first
            states of the decoder, for each layer a tuple of float (B, D).
        """
        memory = self.picture_grid(pictures)
        everywhere = ops.ones(ops.shape(memory)[:2], "bool")
        mean = ops.mean(memory, axis=1)
        states = [layer(mean) for layer in self._first]
        each = len(states) // self.num_layers
        return (memory, positions_from_mask(everywhere)), tuple(
            tuple(states[i : i + each]) for i in range(0, len(states), each)
        )

    def read_sources(self, pictures):
        """Returns the pictures that `generate` and `stream` describe.

        Args:
            pictures: (B, H, W, C), 0 to 255.

        Returns:
            NumPy array of that shape.

        Raises:
            ValueError: pictures of another shape.
        """
        return ops.convert_to_numpy(self._check_pictures(pictures))

    def check_inputs(self, inputs):
        """Returns (pictures, target ids), or raises ValueError."""
        if not isinstance(inputs, (list, tuple)) or len(inputs) != 2:
            raise ValueError(
                "`inputs` must be a pair (pictures, target_ids). "
                f"Received: {type(inputs).__name__}"
            )
        pictures = self._check_pictures(inputs[0])
        target = check_ids("target_ids", inputs[1], self.target_vocabulary_size)
        rows = pictures.shape[0], target.shape[0]
        if None not in rows and rows[0] != rows[1]:
            raise ValueError(
                "`pictures` and `target_ids` must have the same number of "
                f"rows. Received: {rows[0]} and {rows[1]}"
            )
        return pictures, target

    def get_config(self):
        """Returns the constructor's arguments."""
        config = super().get_config()
        del config["source_vocabulary_size"], config["bidirectional"]
        return config | {
            "vocabulary_size": config.pop("target_vocabulary_size"),
            "picture_shape": self.picture_shape,
            "channels": self.channels,
        }

    def _check_pictures(self, pictures):
        shape = tuple(getattr(pictures, "shape", ()))
        if shape[1:] != self.picture_shape or len(shape) != 4 or shape[0] == 0:
            raise ValueError(
                f"`pictures` must have shape (batch, {self.picture_shape}). "
                f"Received: {type(pictures).__name__} of shape {shape}"
            )
        return pictures
