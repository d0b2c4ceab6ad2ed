"""A Transformer whose source is sound: frames in, characters out."""

import keras
import numpy as np
from context_convolution import ContextConvolution
from ctc_head import CTCHead
from keras import ops
from subsampling import Subsampling

from keras_attn.models import Transformer
from keras_attn.models.input_checks import check_ids
from keras_attn.ops import positions_from_mask


@keras.saving.register_keras_serializable(package="tutorials")
class SpeechTransformer(Transformer):
    """Writes what it hears.

        memory = Encoder(Context(Subsampling(frames)) + PE)
        logits = Decoder(E[y] sqrt(D) + PE, memory) E^T

    Dong et al. 2018, https://ieeexplore.ieee.org/document/8462506: the
    Transformer of *Attention Is All You Need* with convolutions in the place of
    the source's embedding. All that comes behind them is that of
    `keras_attn.models.Transformer`: the blocks, the decoder, its cache, the
    searches.

    In training the encoder spells the text as well, by `CTCHead`, and what that
    costs is added to the loss (Watanabe et al. 2017,
    https://ieeexplore.ieee.org/document/8068205):

        loss = cross-entropy(logits, y) - ctc log P(y | memory) / characters

    A decoder has to find out where it should listen before it learns anything
    from what it hears there. The other loss needs no decoder; so the encoder
    learns first, and the decoder to read what it has found.

    Args:
        vocabulary_size: int. V, of the characters.
        bands: int. Bands of the frames.
        channels: int. Channels of the convolutions.
        reach: int, odd. Vectors that the convolution over them sees.
        ctc: float > 0. Share of the encoder's own spelling in the loss.
        **kwargs: arguments of `Transformer`, the vocabularies left out.

    Call arguments:
        inputs: pair of float (B, F, bands + 1) frames, as
            `sound_batches.padded_frames` makes them: the last feature is 1
            where there is a frame and 0 where there is padding; and of int32
            (B, T) target ids, the target beginning with `start_id`.
        training: bool. Whether dropout acts.

    Returns:
        Float (B, T, V): logits of the character after each target character.

    Raises:
        ValueError: arguments out of range; frames of another rank, width or
            dtype, or a sound without any; ids that cannot be; different numbers
            of rows.
    """

    def __init__(
        self,
        vocabulary_size,
        bands=40,
        channels=32,
        reach=15,
        ctc=0.3,
        **kwargs,
    ):
        for name, value in (("bands", bands), ("channels", channels)):
            if type(value) is not int or value < 1:
                raise ValueError(
                    f"`{name}` must be a positive integer. Received: {value!r}"
                )
        if isinstance(ctc, bool) or not 0 < ctc < float("inf"):
            raise ValueError(
                f"`ctc` must be a number above 0. Received: {ctc!r}"
            )
        # One vocabulary: the only embedding there is is that of the target.
        super().__init__(vocabulary_size, **kwargs)
        self.bands, self.channels = bands, channels
        self._subsampling = Subsampling(
            self.hidden_dim,
            channels,
            dtype=self.dtype_policy,
            name="subsampling",
        )
        self._subsampling.build((None, None, bands))
        self.reach = reach
        self._context = ContextConvolution(
            reach, dtype=self.dtype_policy, name="context"
        )
        self._context.build((None, None, self.hidden_dim))
        self.ctc = ctc
        self._ctc_head = CTCHead(
            vocabulary_size,
            self.pad_id,
            dtype=self.dtype_policy,
            name="ctc_head",
        )
        self._ctc_head.build((None, None, self.hidden_dim))

    def call(self, inputs, training=None):
        """Applies the model; the class docstring lists the arguments."""
        frames, target_ids = self.check_inputs(inputs)
        memory, positions = self.encode(frames, training=training)
        if training:
            # Behind the start the target is the text, without its end.
            loss = self._ctc_head.loss(
                memory, _vectors(positions), target_ids[:, 1:]
            )
            self.add_loss(self.ctc * loss)
        return self.decode(target_ids, memory, positions, training=training)

    def spell(self, frames):
        """Returns what the encoder spells, without the decoder.

        Args:
            frames: float (B, F, bands + 1).

        Returns:
            List of B lists of int, ids of characters.

        Raises:
            ValueError: frames that cannot be.
        """
        memory, positions = self.encode(self.read_sources(frames))
        return self._ctc_head.spell(memory, _vectors(positions))

    def score(self, frames, tokens):
        """Says how likely texts are, by the decoder and by the encoder.

        Args:
            frames: float (B, F, bands + 1).
            tokens: int32 (B, n, L), n texts for each sound, the end behind
                each, and then padding.

        Returns:
            Tuple of NumPy arrays, float (B, n): log p(text | sound), in nats,
            of the decoder, and of the encoder's own spelling.

        Raises:
            ValueError: frames that cannot be.
        """
        rows, count, length = tokens.shape
        memory, positions = (
            ops.repeat(part, count, axis=0)
            for part in self.encode(self.read_sources(frames))
        )
        texts = tokens.reshape(rows * count, length)
        target = np.full_like(texts, self.start_id)
        target[:, 1:] = texts[:, :-1]
        target[target == self.end_id] = self.pad_id
        logits = self.decode(ops.convert_to_tensor(target), memory, positions)
        taken = ops.take_along_axis(
            ops.log_softmax(ops.cast(logits, "float32")), texts[..., None], -1
        )
        decoder = ops.sum(ops.where(texts != self.pad_id, taken[..., 0], 0), 1)
        characters = np.where(texts == self.end_id, self.pad_id, texts)
        encoder = self._ctc_head.log_probability(
            memory, _vectors(positions), characters
        )
        return tuple(
            ops.convert_to_numpy(part).reshape(rows, count)
            for part in (decoder, encoder)
        )

    def embed_source(self, frames):
        """Makes vectors of sounds, in the place of `Transformer`'s embedding.

        Args:
            frames: float (B, F, bands + 1).

        Returns:
            Float (B, S, D), and positions, int32 (B, S), -1 behind the end;
            S = F / 4, rounded up.
        """
        x, there = self._subsampling(frames[..., :-1], frames[..., -1] > 0)
        return self._context(x, there), positions_from_mask(there)

    def read_sources(self, frames):
        """Returns the sounds that `generate` and `stream` write down.

        Args:
            frames: float (B, F, bands + 1).

        Returns:
            NumPy array of that shape.

        Raises:
            ValueError: frames that cannot be, or a sound without any.
        """
        frames = ops.convert_to_numpy(self._check_frames(frames))
        empty = (frames[..., -1] <= 0).all(axis=1).nonzero()[0]
        if empty.size:
            raise ValueError(
                "`frames` must hold a frame in every row. "
                f"Received: none in row {empty[0]}"
            )
        return frames

    def check_inputs(self, inputs):
        """Returns (frames, target ids), or raises ValueError."""
        if not isinstance(inputs, (list, tuple)) or len(inputs) != 2:
            raise ValueError(
                "`inputs` must be a pair (frames, target_ids). "
                f"Received: {type(inputs).__name__}"
            )
        frames = self._check_frames(inputs[0])
        target = check_ids("target_ids", inputs[1], self._sizes[1])
        rows = frames.shape[0], target.shape[0]
        if None not in rows and rows[0] != rows[1]:
            raise ValueError(
                "`frames` and `target_ids` must have the same number of rows. "
                f"Received: {rows[0]} and {rows[1]}"
            )
        return frames, target

    def compute_output_shape(self, inputs_shape):
        """Returns the shape of the logits."""
        return (*inputs_shape[1], self._sizes[1])

    def get_config(self):
        """Returns the constructor's arguments."""
        config = super().get_config()
        vocabulary_size = config.pop("source_vocabulary_size")
        config.pop("target_vocabulary_size")
        return {
            **config,
            "vocabulary_size": vocabulary_size,
            "bands": self.bands,
            "channels": self.channels,
            "reach": self.reach,
            "ctc": self.ctc,
        }

    def _check_frames(self, frames):
        shape = tuple(getattr(frames, "shape", ()))
        if len(shape) != 3 or shape[-1] != self.bands + 1 or 0 in shape:
            raise ValueError(
                f"`frames` must have shape (batch, frames, {self.bands + 1}), "
                "the last feature 1 where there is a frame. "
                f"Received: {shape or type(frames).__name__}"
            )
        if "float" not in keras.backend.standardize_dtype(frames.dtype):
            raise ValueError(
                f"`frames` must hold floats. Received: dtype {frames.dtype}"
            )
        return frames


def _vectors(positions):
    """Returns how many vectors each sound has, int32 (B,)."""
    return ops.sum(ops.cast(positions >= 0, "int32"), axis=1)
