"""A small formant synthesizer, at 8,000 samples per second."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from keras_attn.typing import Tensor

if TYPE_CHECKING:
    from keras_attn.datasets.digit_phones import Phone
    from keras_attn.datasets.stable_random import StableRandom


SAMPLE_RATE = 8000
# Samples per frame: 4 ms. A power of two, so that interpolation of rounded
# pitches is exact.
_STEP = 32
# Half the time in which formants and amplitudes change from one sound to the
# next, in seconds.
_GLIDE, _FADE = 0.03, 0.008
# The fourth formant, and the bandwidths of all four, in Hz.
_FOURTH = 3500.0
_BANDWIDTHS = 70.0, 100.0, 160.0, 300.0
# The band of a telephone ends there, in Hz.
_CUTOFF = 3900.0


class Voice(NamedTuple):
    """What distinguishes a speaker.

    Args:
        formant_scales: four floats. Factors of the formants of a man.
        pitch: float. Mean frequency of the voice, in Hz.
        rate: float. Factor of the speed.
        corner: float. Frequency in Hz above which the spectrum of the voice
            falls; the voice is the softer the lower it is.
        breath: float. Amplitude of noise in the voice.
    """

    formant_scales: Any
    pitch: float
    rate: float
    corner: float
    breath: float


def synthesize(
    phones: "Sequence[Phone]",
    starts: Sequence[float],
    pitch: Sequence[tuple[Any, Any]],
    voice: Voice,
    random: "StableRandom",
) -> Tensor:
    """Makes the sound of phones.

    The voice is a sum of harmonics of the pitch, weighted by four resonances.
    Other sounds are noise, filtered by the resonances or by a band.

    Args:
        phones: list of `Phone`, with scaled durations and formants.
        starts: list of float. When each begins, in seconds, and when the last
            one ends.
        pitch: list of pairs (seconds, Hz), to interpolate.
        voice: `Voice`.
        random: `StableRandom`. Draws the noise.

    Returns:
        Float64 (T,). The root mean square of a vowel is 0.6 to 2.4.
    """
    frames = int(np.ceil(starts[-1] * SAMPLE_RATE / _STEP)) + 2
    times = np.arange(frames) * (_STEP / SAMPLE_RATE)

    def track(values, half):
        return _track(times, starts, values, half)

    formants = np.stack(
        [
            track([phone.formants[index] for phone in phones], _GLIDE)
            for index in range(3)
        ]
        + [np.full(frames, _FOURTH)],
        axis=1,
    ) * np.array(voice.formant_scales)
    voicing, aspiration, frication, center, width = (
        track([getattr(phone, name) for phone in phones], _FADE)
        for name in ("voicing", "aspiration", "frication", "center", "width")
    )
    # Rounded, because errors of the phase accumulate, and would make samples
    # differ between platforms.
    pitch = np.rint(1024 * np.interp(times, *zip(*pitch, strict=True))) / 1024
    voiced = _harmonics(pitch, voicing, formants, voice.corner)
    frequencies = np.fft.rfftfreq(2 * _STEP, 1 / SAMPLE_RATE)
    tract = np.abs(_resonances(frequencies[None], formants))
    gains = 0.5 * (aspiration + voice.breath * voicing)[:, None] * tract
    distance = (frequencies - center[:, None]) / width[:, None]
    band = np.exp(-0.5 * distance**2)
    # `frication` is the standard deviation of the filtered noise.
    band *= (frication / np.sqrt((band**2).mean(1)))[:, None]
    return voiced + _noise(gains + band, random)


def _track(times, starts, values, half):
    """Interpolates between the values of phones, constant within each."""
    knots, levels = [], []
    for start, end, value in zip(starts, starts[1:], values, strict=False):
        edge = min(half, 0.45 * (end - start))
        knots += [start + edge, end - edge]
        levels += [value, value]
    return np.interp(times, knots, levels)


def _resonances(frequencies, formants):
    """Returns the response of four resonances in series, complex (frames, n).

    Args:
        frequencies: float (frames or 1, n), in Hz.
        formants: float (frames, 4), in Hz.
    """
    response = 1.0
    for index, bandwidth in enumerate(_BANDWIDTHS):
        square = formants[:, index, None] ** 2
        response = response * (
            square / (square - frequencies**2 + 1j * bandwidth * frequencies)
        )
    return response


def _harmonics(pitch, voicing, formants, corner):
    """Returns the samples of a voice, float64 ((frames - 1) * step,)."""
    numbers = np.arange(1, int(_CUTOFF / pitch.min()) + 1)
    frequencies = pitch[:, None] * numbers
    # The glottal flow falls by 12 dB per octave, and sound radiates from the
    # mouth with a rise of 6 dB per octave.
    source = 1j * frequencies / (1 + 1j * frequencies / corner) ** 2
    source *= 100 / corner**2 * np.clip((_CUTOFF - frequencies) / 300, 0, 1)
    amplitudes = source * _resonances(frequencies, formants)
    amplitudes *= voicing[:, None]
    ramp = np.arange(_STEP) / _STEP
    pitches = pitch[:-1, None] + np.diff(pitch)[:, None] * ramp
    phase = 2 * np.pi * np.cumsum(pitches.ravel()) / SAMPLE_RATE
    turn = np.exp(1j * phase).reshape(pitches.shape)
    wave, total = 1.0, np.zeros(pitches.shape)
    for amplitude in amplitudes.T:
        wave = wave * turn
        between = amplitude[:-1, None] + np.diff(amplitude)[:, None] * ramp
        total += (between * wave).real
    return total.ravel()


def _noise(gains, random):
    """Returns filtered noise, float64 ((frames - 1) * step,).

    Args:
        gains: float (frames, step + 1). Response of each frame.
        random: `StableRandom`.
    """
    frames = len(gains)
    size = 2 * _STEP
    noise = random.normal((frames, size))
    filtered = np.fft.irfft(np.fft.rfft(noise) * gains, size)
    # The squares of overlapping windows sum to 1.
    filtered *= np.sin(np.pi * (np.arange(size) + 0.5) / size)
    # A frame begins a step before its time.
    return (filtered[:-1, _STEP:] + filtered[1:, :_STEP]).ravel()
