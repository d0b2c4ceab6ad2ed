"""Changes to sounds that leave what is said as it is.

A recogniser that is trained on few voices learns those voices. Each time it
hears a recording, it hears it changed: faster and higher or slower and deeper,
brighter or duller, in noise, and with parts of the spectrum hidden.
"""

import numpy as np


def change_speed(samples, factor):
    """Plays a sound faster, and so higher, or slower and deeper.

    Samples are taken at times that are `factor` apart, along straight lines
    between those that there are. Formants move as with a shorter vocal tract.

    Args:
        samples: float (n,).
        factor: float > 0. Above 1 is faster.

    Returns:
        Float32 (about n / factor,).

    Raises:
        ValueError: a factor that is not positive.

    Examples:
        >>> change_speed(np.array([0.0, 1.0, 2.0, 3.0]), 0.5).tolist()
        [0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0]
    """
    if not factor > 0:
        raise ValueError(
            f"`factor` must be greater than 0. Received: factor={factor}"
        )
    last = len(samples) - 1
    places = np.arange(0, last + 1e-9, factor)
    return np.interp(places, np.arange(last + 1), samples).astype("float32")


def tilt(samples, slope):
    """Makes a sound brighter or duller, as another microphone would.

        y[n] = x[n] + slope x[n - 1]

    Args:
        samples: float (n,).
        slope: float in (-1, 1). Above 0 low frequencies gain, below 0 high
            ones.

    Returns:
        Float32 (n,).

    Raises:
        ValueError: a slope out of range.
    """
    if not -1 < slope < 1:
        raise ValueError(
            f"`slope` must lie between -1 and 1. Received: slope={slope}"
        )
    changed = np.array(samples, "float32")
    changed[1:] += np.float32(slope) * np.asarray(samples, "float32")[:-1]
    return changed


def add_noise(samples, snr_db, generator):
    """Adds white noise.

    Args:
        samples: float (n,).
        snr_db: float. Mean power of the sound over that of the noise, in
            decibels.
        generator: `numpy.random.Generator`.

    Returns:
        Float32 (n,).
    """
    power = np.mean(np.square(samples, dtype="float64"))
    deviation = np.sqrt(power * 10 ** (-snr_db / 10))
    noise = generator.standard_normal(len(samples), "float32")
    return (samples + np.float32(deviation) * noise).astype("float32")


def hide_parts(frames, generator, bands=6, times=8):
    """Hides a stretch of frequencies and a stretch of time.

    Both are set to 0, the mean of all frames: SpecAugment without its time
    warping (Park et al. 2019, https://arxiv.org/abs/1904.08779).

    Args:
        frames: float (F, B).
        generator: `numpy.random.Generator`.
        bands: int. Most bands that are hidden, but never more than a fifth.
        times: int. Most frames that are hidden, likewise.

    Returns:
        Float (F, B), a copy.
    """
    frames = frames.copy()
    for axis, most in ((0, times), (1, bands)):
        size = generator.integers(min(most, frames.shape[axis] // 5) + 1)
        start = generator.integers(frames.shape[axis] - size + 1)
        hidden = [slice(None), slice(None)]
        hidden[axis] = slice(start, start + size)
        frames[tuple(hidden)] = 0
    return frames
