"""Normalized log-mel frames of recordings."""

import math
from typing import TYPE_CHECKING, Any

import keras
from keras import ops

from keras_attn import checks
from keras_attn.backend import TorchNames, concrete, pad, reduce_max
from keras_attn.layers.checked_call import CheckedCall
from keras_attn.typing import Shape, Tensor, TensorLike


@keras.saving.register_keras_serializable(package="keras_attn")
class LogMelSpectrogram(CheckedCall, TorchNames, keras.layers.Layer):
    """Computes normalized log-mel frames of recordings.

        level[t, m] = log max(mel[t, m] / max(mel), 1e-6)
        frame[t, m] = (level[t, m] - mean(level)) / deviation(level)

    mel are the powers in mel bands, as in `keras.layers.MelSpectrogram`. The
    floor lies 60 dB below the loudest value. Maximum, mean and standard
    deviation are those of one recording, so the frames do not depend on its
    volume, nor on the other recordings of a batch; the decibels of
    `MelSpectrogram` do. Around each recording there is silence. The frames of
    silence are zeros.

    There are no weights. `keras_attn.models.SpeechTransformer` reads such
    frames.

    Args:
        sampling_rate: int. Samples per second, in Hz. Default 16000.
        sequence_stride: int. Samples from one frame to the next. Default 160.
        fft_length: int. Samples that each frame depends on. Default 512.
        num_mel_bins: int. M, the number of mel bands. Default 80.
        min_freq: float. Lowest frequency of the first band, in Hz. Default
            20.0. The last band ends at half the sampling rate.
        **kwargs: arguments of `keras.layers.Layer`: `name`, `dtype`, ...

    Call arguments:
        samples: float (B, n). Recordings, of any scale, padded to one length.
        lengths: int (B,). Number of samples of each recording. None: n.

    Returns:
        Float (B, F, M), F = 1 + n // sequence_stride. The frames after the
        first 1 + lengths // sequence_stride of a recording are zeros.

    Raises:
        ValueError: arguments out of range; samples of another rank; lengths of
            another shape, not integers, or out of range.

    Examples:
        >>> layer = keras_attn.layers.LogMelSpectrogram(
        ...     8000, sequence_stride=80, fft_length=256, num_mel_bins=40)
        >>> samples = np.random.default_rng(0).normal(size=(2, 800))
        >>> frames = layer(samples, lengths=np.array([800, 400]))
        >>> tuple(frames.shape)
        (2, 11, 40)
        >>> bool(keras.ops.any(frames[1, 6:]))
        False
    """

    _tensors = "samples", "lengths"

    def __init__(
        self,
        sampling_rate: int = 16000,
        sequence_stride: int = 160,
        fft_length: int = 512,
        num_mel_bins: int = 80,
        min_freq: float = 20.0,
        **kwargs: Any,
    ) -> None:
        checks.positive_int("sampling_rate", sampling_rate)
        checks.positive_int("sequence_stride", sequence_stride)
        checks.positive_int("fft_length", fft_length)
        checks.positive_int("num_mel_bins", num_mel_bins)
        if not 0 <= checks.real("min_freq", min_freq) < sampling_rate // 2:
            raise ValueError(
                "`min_freq` must be at least 0 and lower than half of "
                f"sampling_rate={sampling_rate}. Received: min_freq={min_freq}"
            )
        # Half precision would round the samples.
        super().__init__(autocast=False, **kwargs)
        self.sampling_rate = sampling_rate
        self.sequence_stride = sequence_stride
        self.fft_length = fft_length
        self.num_mel_bins = num_mel_bins
        self.min_freq = min_freq

    def build(
        self, samples_shape: Shape, lengths_shape: Shape | None = None
    ) -> None:
        """There are no weights."""

    def call(
        self, samples: TensorLike, lengths: TensorLike | None = None
    ) -> Tensor:
        """Computes frames; the class docstring lists the arguments."""
        checks.no_complex("samples", checks.rank("samples", samples, 2))
        stride = self.sequence_stride
        samples = ops.cast(samples, "float32")
        length = ops.shape(samples)[1]
        counts = ops.sum(ops.ones_like(samples, dtype="int32"), axis=1)
        if lengths is not None:
            _check_lengths(lengths, tuple(samples.shape))
            counts = ops.cast(lengths, "int32")
        indices = ops.arange(length, dtype="int32")
        samples = ops.where(indices < counts[:, None], samples, 0.0)
        mel = self._mel_powers(samples)
        numbers = ops.arange(1 + length // stride, dtype="int32")
        mask = numbers <= counts[:, None] // stride
        mask = ops.cast(mask, "float32")[..., None]
        loudest = reduce_max(mel * mask, axis=(1, 2), keepdims=True)
        # The level of silence, which has no loudest value, is exactly 0.
        level = ops.log(ops.maximum(1e6 * (mel / (loudest + 1e-30)), 1.0))
        size = self.num_mel_bins * ops.sum(mask, axis=(1, 2), keepdims=True)
        mean = ops.sum(level * mask, axis=(1, 2), keepdims=True) / size
        square = ops.square((level - mean) * mask)
        variance = ops.sum(square, axis=(1, 2), keepdims=True) / size
        frames = (level - mean) / (ops.sqrt(variance) + 1e-6) * mask
        return ops.cast(frames, self.compute_dtype)

    if TYPE_CHECKING:
        __call__ = call

    def _mel_powers(self, samples):
        """Returns the powers in mel bands, float32 (B, F, M)."""
        size = self.fft_length
        # Each frame is centered at a multiple of the stride.
        samples = pad(samples, [(0, 0), (size // 2, size - size // 2)])
        real, imaginary = ops.stft(
            samples, size, self.sequence_stride, size, center=False
        )
        power = ops.square(real) + ops.square(imaginary)
        return ops.matmul(power, self._bands())

    def _bands(self):
        """Returns the weights of frequencies in bands, float32 (n, M)."""
        # Triangles of one width on the mel scale, in units of 1127 mel.
        lowest, highest = self.min_freq, self.sampling_rate / 2
        low, high = (math.log(1 + f / 700) for f in (lowest, highest))
        width = (high - low) / (self.num_mel_bins + 1)
        numbers = ops.arange(1, self.num_mel_bins + 1, dtype="float32")
        hertz = ops.arange(1 + self.fft_length // 2, dtype="float32")
        mel = ops.log(1 + hertz * (self.sampling_rate / self.fft_length / 700))
        return ops.relu(1 - ops.abs((mel[:, None] - low) / width - numbers))

    def compute_output_shape(
        self, samples_shape: Shape, lengths_shape: Shape | None = None
    ) -> Shape:
        """Returns the shape of the frames."""
        rows, length = samples_shape
        count = None if length is None else 1 + length // self.sequence_stride
        return rows, count, self.num_mel_bins

    def get_config(self) -> dict[str, Any]:
        """Returns the constructor's arguments."""
        config = super().get_config()
        for name in (
            "sampling_rate",
            "sequence_stride",
            "fft_length",
            "num_mel_bins",
            "min_freq",
        ):
            config[name] = getattr(self, name)
        return config


def _check_lengths(lengths, samples_shape):
    rows, length = samples_shape
    checks.rank("lengths", checks.integers("lengths", lengths), 1)
    checks.batch("lengths", lengths.shape, rows)
    values = concrete(lengths)
    if values is None or not values.size:
        return
    least, most = int(values.min()), int(values.max())
    if least < 0 or most > length:
        raise ValueError(
            f"`lengths` must lie in [0, {length}]. Received: lengths from "
            f"{least} to {most}"
        )
