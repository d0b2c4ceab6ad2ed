"""Recording: sampled speech with its text and speaker."""

from typing import Any, NamedTuple


class Recording(NamedTuple):
    """A mono recording and what is spoken in it.

    Args:
        samples: int16 (T,). Audio samples; divide by 32,768 for [-1, 1).
        sample_rate: int. Samples per second, in Hz.
        text: str. What is spoken.
        speaker: str. Name of the speaker. Default "": unknown.

    Examples:
        >>> recording = keras_attn.datasets.Recording(
        ...     np.zeros(4000, "int16"), 8000, "7", "ann")
        >>> len(recording.samples) / recording.sample_rate
        0.5
    """

    samples: Any
    sample_rate: int
    text: str
    speaker: str = ""
