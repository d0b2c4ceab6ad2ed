"""Plots of sounds, frames and alignments of the speech recognizer."""

import alignment_plots
import morse_messages
import numpy as np
import pytest
from log_mel import LogMel

pytestmark = pytest.mark.one_backend


@pytest.fixture
def sound():
    generator = np.random.default_rng(0)
    return morse_messages.make_message("ET T", 20, 600, 10, generator)


@pytest.fixture
def log_mel():
    return LogMel(step=100, bins=12)


def test_waveform_and_frames_share_the_time_axis(sound, log_mel):
    (frames,) = log_mel([sound.samples])
    figure = alignment_plots.plot_sound(sound, frames, log_mel)
    upper, lower = figure.axes
    assert upper.get_title() == "ET T"
    written = [
        (text.get_text(), text.get_position()[0]) for text in upper.texts
    ]
    assert [character for character, _ in written] == [*"ET T"]
    for (_, position), (start, stop) in zip(written, sound.spans, strict=True):
        assert start <= position <= stop
    (image,) = lower.images
    np.testing.assert_array_equal(image.get_array(), frames.T)
    left, right, *_ = image.get_extent()
    # Frames are centered at their times.
    assert left == pytest.approx(-0.5 * 100 / 8000)
    assert right == pytest.approx((len(frames) - 0.5) * 100 / 8000)


def test_alignment_is_drawn_below(sound, log_mel):
    (frames,) = log_mel([sound.samples])
    vectors = -(-len(frames) // 4)
    weights = np.random.default_rng(0).random((5, vectors))
    figure = alignment_plots.plot_alignment(
        sound, frames, log_mel, weights, title="heard"
    )
    upper, _, lower = figure.axes
    assert upper.get_title() == "heard"
    labels = [label.get_text() for label in lower.get_yticklabels()]
    assert labels == ["E", "T", "space", "T", "end"]
    (mesh,) = lower.collections
    np.testing.assert_array_equal(
        mesh.get_array().reshape(weights.shape), weights
    )
    # One box per character; a vector is centered on its four frames.
    assert len(lower.lines) == 4
    for line, (start, stop) in zip(lower.lines, sound.spans, strict=True):
        assert set(line.get_xdata()) == {start, stop}
    edges = mesh.get_coordinates()[0, :, 0]
    assert edges[1] - edges[0] == pytest.approx(400 / 8000)
    assert edges[:2].mean() == pytest.approx(log_mel.seconds(0))
