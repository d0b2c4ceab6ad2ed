"""Speech recognition by a Transformer with a CTC head."""

from typing import TYPE_CHECKING, Any, Self

import keras
import numpy as np
from keras import ops

from keras_attn import checks
from keras_attn.backend import known_size, pad
from keras_attn.decoding import BeamSearch, Decoded
from keras_attn.models.input_checks import check_source_and_target, ids_spec
from keras_attn.models.layout import SPEECH, check_rules, layout_map_method
from keras_attn.models.speech_front_end import SpeechFrontEnd
from keras_attn.models.transformer import Transformer
from keras_attn.ops import positions_from_mask
from keras_attn.typing import Nest, Tensor, TensorLike

if TYPE_CHECKING:
    from keras_attn.decoding.protocol import DecodingState


@keras.saving.register_keras_serializable(package="keras_attn")
class SpeechTransformer(Transformer):
    """Encoder-decoder Transformer that transcribes speech, with a CTC head.

        h = Conv_s2(Conv_s2(frames)) W
        h = h + Conv(LayerNorm(h))
        memory = Encoder(h + PE)
        logits = Decoder(E[y] sqrt(D) + PE, memory) E^T
        P_ctc(y) = sum of prod_s softmax(memory[s] W' + b)[a[s]] over paths a

    Two convolutions of 3 x 3 with a stride of 2 in time and in frequency make
    S = ceil(F / 4) vectors of F frames, as in "Speech-Transformer" (Dong et al.
    2018, https://ieeexplore.ieee.org/document/8462506). A third convolution,
    over 15 of these vectors, adds local context (Mohamed et al. 2019,
    https://arxiv.org/abs/1904.11660). Each convolution has a ReLU.

    The sum of connectionist temporal classification (CTC, Graves et al. 2006)
    is over the paths of one token or blank per vector that give y if repeated
    tokens are merged and blanks are removed; `pad_id` is the blank. In
    training, the loss -log P_ctc(y) per token is added, multiplied by
    `ctc_weight` (Watanabe et al. 2017,
    https://ieeexplore.ieee.org/document/8068205). It teaches the encoder where
    the tokens are long before the decoder's attention finds them. Rows with
    too few vectors for their tokens do not count in it.

    Departures from the paper: the CTC head, and the third convolution instead
    of 2D attention.

    Frames that are all 0 at the end of a row are padding, as for
    `keras.layers.Masking`; zeros between other frames are not. Padding does not
    change the results. A row of zeros counts as one frame.
    `keras_attn.layers.LogMelSpectrogram` makes such frames.

    All methods take frames (B, F, M) where those of `Transformer` take source
    ids; the memory has S vectors. `generate` and `stream` use the decoder
    alone; `transcribe` also uses the CTC head. Default sizes as in ESPnet
    (Karita et al. 2019, https://arxiv.org/abs/1909.06317).

    Args:
        vocabulary_size: int. V, of the texts.
        num_mel_bins: int. M, features of each frame. Default 80.
        filters: int. Filters of the two strided convolutions. Default 64.
        ctc_weight: float >= 0. Weight of the CTC loss. Default 0.3.
        num_layers: int. Blocks in the encoder. Default 12.
        num_heads: int. N, dividing `hidden_dim`. Default 4.
        hidden_dim: int. D. Default 256.
        intermediate_dim: int. Width inside the feed-forward networks. Default
            2048.
        num_decoder_layers: int. Blocks in the decoder; None: `num_layers`.
            Default 6.
        normalize_first: bool. Pre-norm blocks, and a layer norm after each
            stack. Default True.
        pad_id: int. The id of padding tokens and blanks, unlike `end_id`.
        start_id: int. First id of every target.
        end_id: int. Last id of every text.
        **kwargs: other arguments of `Transformer`, such as `dropout` and
            `encoder_attention_position`, and of `keras.Model` (`name`, `dtype`,
            ...).

    Call arguments:
        inputs: pair of float (B, F, M) frames and int32 (B, T) target ids,
            beginning with `start_id`.
        training: bool. Whether to apply dropout, and to add the CTC loss.

    Returns:
        Float (B, T, V): logits of the token after each target token.

    Raises:
        ValueError: arguments out of range; frames of another shape; ids of the
            wrong rank, not integers, or out of range.

    Examples:
        >>> model = keras_attn.models.SpeechTransformer(
        ...     20, num_mel_bins=8, filters=4, num_layers=1, num_heads=2,
        ...     hidden_dim=16, intermediate_dim=32, num_decoder_layers=1)
        >>> frames = np.random.default_rng(0).normal(size=(2, 30, 8))
        >>> tuple(model((frames, np.array([[1, 5], [1, 6]]))).shape)
        (2, 2, 20)
        >>> memory, positions = model.encode(frames)
        >>> tuple(memory.shape)
        (2, 8, 16)
        >>> model.transcribe(frames, 5).tokens.shape
        (2, 1, 5)
    """

    get_layout_map: Any = layout_map_method(SPEECH)

    def __init__(
        self,
        vocabulary_size: int,
        num_mel_bins: int = 80,
        filters: int = 64,
        ctc_weight: float = 0.3,
        num_layers: int = 12,
        num_heads: int = 4,
        hidden_dim: int = 256,
        intermediate_dim: int = 2048,
        num_decoder_layers: int | None = 6,
        normalize_first: bool = True,
        pad_id: int = 0,
        start_id: int = 1,
        end_id: int = 2,
        **kwargs: Any,
    ) -> None:
        checks.positive_int("vocabulary_size", vocabulary_size)
        checks.positive_int("num_mel_bins", num_mel_bins)
        checks.positive_int("filters", filters)
        if checks.real("ctc_weight", ctc_weight) < 0:
            raise ValueError(
                "`ctc_weight` must be at least 0. "
                f"Received: ctc_weight={ctc_weight}"
            )
        super().__init__(
            vocabulary_size,
            None,
            num_layers=num_layers,
            num_heads=num_heads,
            hidden_dim=hidden_dim,
            intermediate_dim=intermediate_dim,
            num_decoder_layers=num_decoder_layers,
            normalize_first=normalize_first,
            pad_id=pad_id,
            start_id=start_id,
            end_id=end_id,
            **kwargs,
        )
        self.vocabulary_size = vocabulary_size
        self.num_mel_bins = num_mel_bins
        self.filters = filters
        self.ctc_weight = ctc_weight
        self._front_end = SpeechFrontEnd(
            num_mel_bins,
            filters,
            hidden_dim,
            self.epsilon,
            dtype=self.dtype_policy,
            name="front_end",
        )
        self._front_end.build()
        self._ctc_dense = keras.layers.Dense(
            vocabulary_size, dtype=self.dtype_policy, name="ctc_output"
        )
        self._ctc_dense.build((None, None, hidden_dim))
        check_rules(self)

    @classmethod
    def base(cls, vocabulary_size: int, **kwargs: Any) -> Self:
        """Returns a model of the default sizes."""
        return cls(vocabulary_size, **kwargs)

    @classmethod
    def big(cls, vocabulary_size: int, **kwargs: Any) -> Self:
        """Returns a larger model, as of ESPnet for LibriSpeech."""
        sizes = {"num_heads": 8, "hidden_dim": 512}
        return cls(vocabulary_size, **(sizes | kwargs))

    def call(self, inputs: Nest, training: bool | None = None) -> Tensor:
        """Applies the model; the class docstring lists the arguments."""
        frames, target_ids = self.check_inputs(inputs)
        memory, positions = self.encode(frames, training=training)
        if training and self.ctc_weight:
            self.add_loss(self._ctc_loss(memory, positions, target_ids))
        return self.decode(target_ids, memory, positions, training=training)

    def embed_source(self, frames: TensorLike) -> tuple[Tensor, Tensor]:
        """Applies the convolutions, the first step of `encode`.

        Args:
            frames: float (B, F, M).

        Returns:
            Float (B, S, D), without absolute positions; and positions, int32
            (B, S), -1 at padding.
        """
        x, mask = self._front_end(ops.convert_to_tensor(frames))
        return x, positions_from_mask(mask)

    def ctc_logits(
        self, memory: TensorLike, positions: TensorLike
    ) -> tuple[Tensor, Tensor]:
        """Computes the logits of tokens and blanks.

        Args:
            memory: float (B, S, D), from `encode`.
            positions: int32 (B, S), from `encode`.

        Returns:
            Logits, float (B, S, V), at least float32, and the number of vectors
            that are not padding, int32 (B,): the arguments of
            `keras.ops.ctc_decode`.
        """
        lengths = ops.sum(ops.cast(positions >= 0, "int32"), axis=1)
        return ops.cast(self._ctc_dense(memory), "float32"), lengths

    def ctc_score(
        self, memory: TensorLike, positions: TensorLike, tokens: TensorLike
    ) -> Tensor:
        """Computes log-probabilities of texts by CTC.

        Args:
            memory: float (B, S, D), from `encode`.
            positions: int32 (B, S), from `encode`.
            tokens: int32 (B, L). Padded texts; the end token, which CTC does
                not have, is ignored.

        Returns:
            Float (B,): log P_ctc, -inf for a text that is too long for its
            vectors: each token needs one, and so does the blank between equal
            tokens.
        """
        scores, possible = self._ctc_scores(memory, positions, tokens)
        return ops.where(possible, scores, -float("inf"))

    def score(
        self, memory: TensorLike, positions: TensorLike, tokens: TensorLike
    ) -> Tensor:
        """Computes log-probabilities of texts by decoder and CTC.

            score(y) = log P_decoder(y) + log P_ctc(y)

        As in joint decoding of Hori et al. 2017, https://arxiv.org/abs/1706.02737,
        with equal weights.

        Args:
            memory: float (B, S, D), from `encode`.
            positions: int32 (B, S), from `encode`.
            tokens: int32 (B, L). Texts as `generate` returns them, with the end
                token, padded with `pad_id`.

        Returns:
            Float (B,).
        """
        tokens = ops.cast(tokens, "int32")
        start = ops.full_like(tokens[:, :1], self.start_id)
        texts = ops.where(tokens == self.end_id, self.pad_id, tokens)
        target = ops.concatenate([start, texts[:, :-1]], axis=1)
        logits = self.decode(target, memory, positions, training=False)
        log_probs = ops.log_softmax(ops.cast(logits, "float32"))
        log_probs = ops.take_along_axis(log_probs, tokens[..., None], axis=-1)
        token_mask = ops.cast(tokens != self.pad_id, "float32")
        decoder = ops.sum(log_probs[..., 0] * token_mask, axis=1)
        return decoder + self.ctc_score(memory, positions, tokens)

    def transcribe(
        self, frames: TensorLike, max_new_tokens: int = 64, num_beams: int = 4
    ) -> Decoded:
        """Transcribes recordings by decoder and CTC.

        The text with the highest `score` of `num_beams` hypotheses of the
        decoder, which may lose its position in the recording, and of the text
        that CTC reads from the most likely token of each vector, which does not
        depend on its other tokens. All rows are decoded together.

        Args:
            frames: float (B, F, M).
            max_new_tokens: int. The maximum number of tokens, including the end
                token.
            num_beams: int. Hypotheses of the beam search. Default 4.

        Returns:
            `Decoded`, as of `generate`: tokens (B, 1, L), scores (B, 1), and
            lengths (B, 1).

        Raises:
            ValueError: frames of another shape, numbers out of range.
        """
        frames = self.read_sources(frames)
        # Without a length penalty: `score` has none.
        strategy = BeamSearch(num_beams, num_beams, length_penalty=0)
        found = self.generate(
            frames, max_new_tokens, strategy, batch_size=len(frames), verbose=0
        ).tokens
        shape = len(frames), num_beams + 1, max_new_tokens
        tokens = np.full(shape, self.pad_id, "int32")
        tokens[:, :-1, : found.shape[2]] = found
        memory, positions = self.encode(frames, training=False)
        logits, lengths = self.ctc_logits(memory, positions)
        (paths,), _ = ops.ctc_decode(logits, lengths, mask_index=self.pad_id)
        paths = ops.convert_to_numpy(paths)
        special = -1, self.pad_id, self.start_id, self.end_id
        for row, path in zip(tokens[:, -1], paths, strict=True):
            text = path[~np.isin(path, special)][: max_new_tokens - 1]
            row[: len(text) + 1] = [*text, self.end_id]
        scores = [
            ops.convert_to_numpy(self.score(memory, positions, texts))
            for texts in tokens.transpose(1, 0, 2)
        ]
        rows, best = np.arange(len(frames)), np.argmax(scores, axis=0)
        tokens, scores = tokens[rows, best][:, None], np.max(scores, axis=0)
        sizes = np.sum(tokens != self.pad_id, axis=2, dtype="int32")
        return Decoded(tokens, scores[:, None], sizes)

    def start_decoding(
        self, inputs: Nest, max_new_tokens: int
    ) -> "DecodingState":
        """Encodes frames and projects them once for every decoder block.

        Args:
            inputs: float (B, F, M) frames.
            max_new_tokens: int. The maximum number of generated tokens.

        Returns:
            `DecodingState`, with room for `max_new_tokens` tokens per row.
        """
        inputs = self._check_frames("inputs", inputs)
        return super().start_decoding(inputs, max_new_tokens)

    def read_sources(self, inputs: Nest) -> Tensor:
        """Checks the frames of `generate` and `stream`.

        Args:
            inputs: float (B, F, M) frames.

        Returns:
            NumPy array (B, F, M).

        Raises:
            ValueError: frames of another shape.
        """
        return ops.convert_to_numpy(self._check_frames("inputs", inputs))

    def check_inputs(self, inputs: Nest) -> Any:
        """Returns [frames, target ids], or raises ValueError."""
        frames, target = check_source_and_target(
            inputs, "frames", self._check_frames, self.vocabulary_size
        )
        self._check_length("target_ids", known_size(target.shape[1]) or 0)
        return [frames, target]

    def input_specs(self) -> Nest:
        """Returns the `keras.InputSpec` of each required input."""
        shape = (None, None, self.num_mel_bins)
        return [keras.InputSpec(shape=shape, dtype="float32"), ids_spec()]

    def get_config(self) -> dict[str, Any]:
        """Returns the constructor's arguments."""
        config = super().get_config()
        for name in "source_vocabulary_size", "target_vocabulary_size":
            del config[name]
        for name in "vocabulary_size", "num_mel_bins", "filters", "ctc_weight":
            config[name] = getattr(self, name)
        return config

    def _ctc_loss(self, memory, positions, target_ids):
        """Returns the weighted loss per token, a scalar."""
        # One column of padding, so that no text has a length of 0.
        tokens = pad(target_ids[:, 1:], [(0, 0), (0, 1)], self.pad_id)
        scores, possible = self._ctc_scores(memory, positions, tokens)
        total = ops.sum(ops.where(possible, scores, 0.0))
        is_token = (tokens != self.pad_id) & (tokens != self.end_id)
        count = ops.sum(ops.cast(is_token & possible[:, None], "float32"))
        return -self.ctc_weight * total / ops.maximum(count, 1.0)

    def _ctc_scores(self, memory, positions, tokens):
        """Returns log-probabilities (B,), and where a text is possible."""
        tokens = ops.cast(tokens, "int32")
        tokens = ops.where(tokens == self.end_id, self.pad_id, tokens)
        logits, lengths = self.ctc_logits(memory, positions)
        is_token = tokens != self.pad_id
        equal = (tokens[:, 1:] == tokens[:, :-1]) & is_token[:, 1:]
        sizes = ops.sum(ops.cast(is_token, "int32"), axis=1)
        blanks = ops.sum(ops.cast(equal, "int32"), axis=1)
        possible = sizes + blanks <= lengths
        # The loss of an impossible text is infinite, and its gradient NaN.
        sizes = ops.where(possible, sizes, 0)
        scores = -ops.ctc_loss(tokens, logits, sizes, lengths, self.pad_id)
        return scores, possible

    def _check_frames(self, name, frames):
        frames = checks.no_complex(name, checks.array(name, frames))
        shape = tuple(frames.shape)
        if not checks.fits(shape, (None, None, self.num_mel_bins)):
            raise ValueError(
                f"`{name}` must have shape (batch, length, "
                f"{self.num_mel_bins}). Received: {shape}"
            )
        if 0 in shape:
            raise ValueError(
                f"`{name}` must hold at least one row and one frame. "
                f"Received: shape {shape}"
            )
        return frames
