"""From waveforms to frames: what a recogniser sees of a sound."""

import keras
import numpy as np

# Sounds are cut into blocks of so many frames, and so many blocks are looked at
# together: one shape for sounds of all lengths, one program to compile.
_BLOCK, _ROWS = 64, 32
_FLOOR = 1e-6  # of the loudest value: 60 dB below it


class LogMel:
    """Makes log-mel frames: how loud each band of frequencies is, and when.

        power[t, k] =
            |sum_n window[n] x[t step + n - N / 2] exp(-2 pi i k n / N)|^2
        level[t, b] = log max(sum_k mel[k, b] power[t, k], floor)
        frame[t, b] = (level[t, b] - mean) / deviation

    with N = `window`, the floor 60 dB below the largest value, mean and
    deviation those of all levels of the sound. So a louder recording has the
    same frames. In front of a sound and behind it there is silence. The bands
    are triangles of equal width on the mel scale, mel(f) = 1127 log(1 + f /
    700), on which pitches that sound equally far apart are so. The sums are
    computed by `keras.layers.MelSpectrogram`.

    Args:
        rate: int. Samples a second.
        step: int. Samples from one frame to the next.
        window: int. Samples that a frame looks at, N.
        bins: int. Bands, B.
        lowest: float. Where the lowest band begins, in Hz; the highest ends at
            half the rate.

    Call arguments:
        sounds: list of float arrays (n,).

    Returns:
        List of float32 (F, B), F = 1 + n // step frames. A sound has the same
        alone and among others.

    Raises:
        ValueError: a sound of another rank, or with less than `window`
            samples.
    """

    def __init__(self, rate=8000, step=80, window=256, bins=40, lowest=100.0):
        self.rate, self.step, self.window = rate, step, window
        self.bins, self.lowest = bins, lowest
        self._mel = keras.layers.MelSpectrogram(
            fft_length=window,
            sequence_stride=step,
            sampling_rate=rate,
            num_mel_bins=bins,
            min_freq=lowest,
            # Its decibels are cut off below the loudest of the whole batch: a
            # sound would not have the same frames alone and among others.
            power_to_db=False,
        )

    def get_config(self):
        """Returns the constructor's arguments."""
        names = "rate", "step", "window", "bins", "lowest"
        return {name: getattr(self, name) for name in names}

    def frames(self, samples):
        """Returns how many frames a sound of so many samples has."""
        return 1 + samples // self.step

    def seconds(self, frames):
        """Returns the time of the middle of frames, by their numbers."""
        return np.asarray(frames) * self.step / self.rate

    def __call__(self, sounds):
        """Makes the frames; the class docstring lists the arguments."""
        for number, sound in enumerate(sounds):
            if np.ndim(sound) != 1 or len(sound) < self.window:
                raise ValueError(
                    f"`sounds` must have one axis and at least {self.window} "
                    f"samples. Received: shape {np.shape(sound)} for sound "
                    f"{number}"
                )
        cut = [self._blocks(np.asarray(sound, "float32")) for sound in sounds]
        powers = self._powers(np.concatenate(cut))
        ends = np.cumsum([len(blocks) for blocks in cut])
        return [
            _levels(part.reshape(-1, self.bins)[: self.frames(len(sound))])
            for part, sound in zip(
                np.split(powers, ends[:-1]), sounds, strict=True
            )
        ]

    @property
    def _margin(self):
        """Frames that half a window reaches over, rounded up."""
        return -(-self.window // (2 * self.step))

    def _blocks(self, sound):
        """Cuts a sound with silence around it, float32 (blocks, samples).

        Blocks overlap: in each, the first and the last frames, which would
        reach over its ends, are none of the sound's.
        """
        count = -(-self.frames(len(sound)) // _BLOCK)
        hop = _BLOCK * self.step
        size = hop + (2 * self._margin - 1) * self.step
        padded = np.zeros((count - 1) * hop + size, "float32")
        front = self._margin * self.step
        room = padded[front:]
        room[: len(sound)] = sound[: len(room)]
        views = np.lib.stride_tricks.sliding_window_view(padded, size)
        return views[::hop]

    def _powers(self, blocks):
        """Returns the powers in mel bands, float32 (blocks, frames, B)."""
        found = []
        for first in range(0, len(blocks), _ROWS):
            chosen = blocks[first : first + _ROWS]
            rows = np.zeros((_ROWS, blocks.shape[1]), "float32")
            rows[: len(chosen)] = chosen
            powers = keras.ops.convert_to_numpy(self._mel(rows))
            powers = powers[: len(chosen), :, self._margin :][..., :_BLOCK]
            found.append(powers.transpose(0, 2, 1))
        return np.concatenate(found)


def _levels(power):
    """Returns frames, float32 (F, B), of powers in mel bands."""
    levels = np.log(np.maximum(power, _FLOOR * power.max() + 1e-30))
    deviation = levels.std()
    # A sound of nothing but zeros has no level at all.
    return (levels - levels.mean()) / (deviation if deviation else 1.0)
