"""Makes the pictures of a notebook small enough to be kept in a repository."""

import io

import numpy as np
from PIL import Image

# Levels of 255 by which a picture of few colours may differ, on average.
_TOLERANCE = 0.5


def shrink(png):
    """Writes a PNG picture in 256 colours, where that is not seen.

    Figures have few colours and become three times smaller; a photograph stays
    as it is. What is transparent becomes white.

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
