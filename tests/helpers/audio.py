"""Measurements of audio signals."""

import numpy as np


def formants(samples, rate=8000, order=10):
    """Formants in Hz, by linear prediction."""
    samples = np.diff(samples) + 0.05 * samples[:-1]
    samples *= np.hamming(len(samples))
    lags = np.correlate(samples, samples, "full")[len(samples) - 1 :]
    numbers = np.arange(order)
    matrix = lags[np.abs(numbers[:, None] - numbers)]
    matrix += 1e-9 * lags[0] * np.eye(order)
    weights = np.linalg.solve(matrix, lags[1 : order + 1])
    roots = np.roots([1, *-weights])
    roots = roots[(roots.imag > 0) & (np.abs(roots) > 0.8)]
    return np.sort(np.angle(roots) * rate / (2 * np.pi))


def log_spectrum(samples, bands=16, parts=8):
    """The log spectrum, averaged in parts of the time and in bands."""
    frames = np.lib.stride_tricks.sliding_window_view(samples, 256)[::80]
    power = np.abs(np.fft.rfft(frames * np.hanning(256))[:, :128]) ** 2
    log = np.log(power.reshape(len(power), bands, -1).mean(-1) + 1e-6)
    means = [part.mean(0) for part in np.array_split(log, parts)]
    return np.ravel(means) - log.mean()


def has_tone(samples, frequency, rate=8000):
    """Where a tone is above half of its amplitude."""
    times = np.arange(len(samples)) / rate
    turned = samples * np.exp(-2j * np.pi * frequency * times)
    period = round(rate / frequency)
    height = np.abs(np.convolve(turned, np.ones(period) / period, "same"))
    return height > height.max() / 2


def runs(mask):
    """Lengths of the runs of True and of the gaps between them."""
    edges = np.flatnonzero(np.diff(np.concatenate([[0], mask, [0]])))
    return edges[1::2] - edges[::2], edges[2::2] - edges[1:-1:2]
