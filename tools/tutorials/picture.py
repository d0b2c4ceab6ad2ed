"""Compression of notebook images, to keep the repository small."""

import io

import numpy as np
from PIL import Image

# Largest mean difference of the reduced image, in levels of 255.
_TOLERANCE = 0.5


def shrink(png):
    """Reduces a PNG image to 256 colors if the difference is invisible.

    Figures have few colors and become three times smaller; photographs are
    unchanged. Transparent pixels become white.

    Args:
        png: bytes of a PNG file.

    Returns:
        Bytes of a PNG file.
    """
    picture = Image.open(io.BytesIO(png)).convert("RGBA")
    white = Image.new("RGBA", picture.size, "white")
    picture = Image.alpha_composite(white, picture).convert("RGB")
    few = picture.quantize(256, dither=Image.Dither.NONE)
    apart = np.asarray(few.convert("RGB"), "int16") - np.asarray(picture)
    kept = few if np.abs(apart).mean() <= _TOLERANCE else picture
    target = io.BytesIO()
    kept.save(target, "PNG", optimize=True)
    return target.getvalue()
