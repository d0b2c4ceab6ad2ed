"""Pictures of what a recogniser hears, and where it looks."""

import numpy as np
from matplotlib.figure import Figure


def plot_sound(sound, frames, log_mel, title=""):
    """Draws the waveform of a sound over its log-mel frames.

    Args:
        sound: has `samples`, float (n,), `text`, and `spans`, float
            (characters, 2), in seconds.
        frames: float (F, bands).
        log_mel: `LogMel` that made them.
        title: str.

    Returns:
        A `matplotlib.figure.Figure`.
    """
    figure = Figure(figsize=(10, 4.6), layout="constrained")
    upper, lower = figure.subplots(2, 1, sharex=True, height_ratios=(1, 2))
    _waveform(upper, sound, log_mel.rate)
    _frames(lower, frames, log_mel)
    lower.set_xlabel("seconds")
    upper.set_title(title or sound.text)
    return figure


def plot_alignment(sound, frames, log_mel, weights, title=""):
    """Draws a sound, and under it where each character of it was heard.

    Args:
        sound: as for `plot_sound`.
        frames: float (F, bands).
        log_mel: `LogMel` that made them.
        weights: float (characters, S). A row for each character written, and
            one for the end where that is there; S = F / 4, rounded up.
        title: str.

    Returns:
        A `matplotlib.figure.Figure`. A box shows when a character was made.
    """
    figure = Figure(figsize=(10, 7.4), layout="constrained")
    panels = figure.subplots(3, 1, sharex=True, height_ratios=(1, 2, 3))
    _waveform(panels[0], sound, log_mel.rate)
    _frames(panels[1], frames, log_mel)
    edges = log_mel.seconds(4 * np.arange(weights.shape[1] + 1) - 2)
    rows = np.arange(len(weights) + 1) - 0.5
    panels[2].pcolormesh(edges, rows, weights, cmap="Blues", vmin=0)
    labels = [*sound.text, "end"][: len(weights)]
    labels = ["space" if label == " " else label for label in labels]
    panels[2].set_yticks(range(len(labels)), labels)
    panels[2].invert_yaxis()
    for row, (start, stop) in enumerate(sound.spans[: len(weights)]):
        panels[2].plot(
            [start, stop, stop, start, start],
            row + np.array([-0.5, -0.5, 0.5, 0.5, -0.5]),
            color="tab:red",
            linewidth=1,
        )
    panels[2].set(ylabel="character written", xlabel="seconds")
    panels[0].set_title(title or sound.text)
    return figure


def _waveform(panel, sound, rate):
    times = np.arange(len(sound.samples)) / rate
    panel.plot(times, sound.samples, linewidth=0.3)
    # One label for each character, above the middle of its time.
    top = np.abs(sound.samples).max()
    for character, (start, stop) in zip(sound.text, sound.spans, strict=True):
        panel.text((start + stop) / 2, 1.05 * top, character, ha="center")
    panel.set(ylabel="waveform", ylim=(-1.2 * top, 1.5 * top))


def _frames(panel, frames, log_mel):
    half = log_mel.seconds(0.5)
    panel.imshow(
        frames.T,
        origin="lower",
        aspect="auto",
        cmap="magma",
        extent=(-half, log_mel.seconds(len(frames)) - half, 0, log_mel.bins),
    )
    panel.set_ylabel("mel band")
