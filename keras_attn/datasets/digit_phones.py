"""The English digits as sequences of speech sounds."""

from typing import Any, NamedTuple


class Phone(NamedTuple):
    """A speech sound of a man, or a part of one.

    Args:
        duration: float. In seconds.
        formants: three floats, in Hz.
        voicing: float. Amplitude of the voice.
        aspiration: float. Amplitude of noise that the formants filter.
        frication: float. Amplitude of noise in a band.
        center: float. Center of the band, in Hz.
        width: float. Standard deviation of the band, in Hz.

    Examples:
        >>> from keras_attn.datasets.digit_phones import PHONES
        >>> PHONES["IY"].formants
        (270, 2290, 3010)
    """

    duration: float
    formants: Any
    voicing: float = 0.0
    aspiration: float = 0.0
    frication: float = 0.0
    center: float = 2000.0
    width: float = 1000.0


# Formants of the vowels: averages of 33 men (Peterson and Barney 1952, table
# II, https://doi.org/10.1121/1.1906875), and 500, 1500, 2500 Hz of a uniform
# tube for AX. Formants of the consonants: Klatt 1980, table III
# (https://doi.org/10.1121/1.383940), but the first of N, which is that of the
# nasal murmur there.
PHONES = {
    "IY": Phone(0.20, (270, 2290, 3010), 1.0),
    "IH": Phone(0.10, (390, 1990, 2550), 1.0),
    "EH": Phone(0.11, (530, 1840, 2480), 1.0),
    "AA": Phone(0.13, (730, 1090, 2440), 1.0),
    "AO": Phone(0.15, (570, 840, 2410), 1.0),
    "UH": Phone(0.10, (440, 1020, 2240), 0.8),
    "UW": Phone(0.21, (300, 870, 2240), 1.0),
    "AH": Phone(0.15, (640, 1190, 2390), 1.0),
    "AX": Phone(0.06, (500, 1500, 2500), 0.7),
    "W": Phone(0.08, (290, 610, 2150), 0.7),
    "R": Phone(0.09, (310, 1060, 1380), 0.8),
    "N": Phone(0.11, (270, 1340, 2470), 0.6),
    "V": Phone(0.07, (220, 1100, 2080), 0.4, 0.0, 0.03, 2500, 2500),
    "Z": Phone(0.10, (240, 1390, 2530), 0.35, 0.0, 0.12, 4200, 700),
    "F": Phone(0.12, (340, 1100, 2080), 0.0, 0.0, 0.06, 2500, 2500),
    "TH": Phone(0.11, (320, 1290, 2540), 0.0, 0.0, 0.04, 3200, 2000),
    "S": Phone(0.14, (320, 1390, 2530), 0.0, 0.0, 0.25, 4200, 700),
    # Stops: the closure, the burst, and aspiration.
    "T closure": Phone(0.06, (400, 1600, 2600)),
    "T burst": Phone(0.02, (400, 1600, 2600), 0.0, 0.0, 0.3, 3700, 800),
    "T aspiration": Phone(0.05, (400, 1600, 2600), 0.0, 0.3),
    "K closure": Phone(0.06, (300, 1990, 2850)),
    "K burst": Phone(0.02, (300, 1990, 2850), 0.0, 0.0, 0.3, 2500, 500),
    "K aspiration": Phone(0.02, (300, 1990, 2850), 0.0, 0.2),
}
_T = ("T closure", "T burst", "T aspiration")
_K = ("K closure", "K burst", "K aspiration")
DIGITS = (
    ("Z", "IH", "R", "AO", "UH"),
    ("W", "AH", "N"),
    (*_T, "UW"),
    ("TH", "R", "IY"),
    ("F", "AO", "R"),
    ("F", "AA", "IH", "V"),
    ("S", "IH", *_K, "S"),
    ("S", "EH", "V", "AX", "N"),
    ("EH", "IY", *_T),
    ("N", "AA", "IH", "N"),
)
