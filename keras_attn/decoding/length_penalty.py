"""Length penalties of beam search."""

import numpy as np

from keras_attn.typing import Tensor

PENALTIES = "gnmt", "power"


def divisors(max_new_tokens: int, alpha: float, penalty: str) -> Tensor:
    """Returns the length penalty of every length.

        gnmt:   lp(n) = ((5 + n) / 6)^alpha
        power:  lp(n) = n^alpha

    The first is lp of Wu et al. 2016, eq. 14, https://arxiv.org/abs/1609.08144,
    with their |Y| as n, the end token included.

    Args:
        max_new_tokens: int. L.
        alpha: float. Values above 0 favor long hypotheses, values below 0 short
            ones; with 0 every penalty is 1.
        penalty: `"gnmt"` or `"power"`.

    Returns:
        NumPy float32 (L,): the penalties of the lengths 1 to L.

    Raises:
        ValueError: a penalty overflows or underflows in float32.
    """
    lengths = np.arange(1, max_new_tokens + 1, dtype="float64")
    base = (5 + lengths) / 6 if penalty == "gnmt" else lengths
    with np.errstate(over="ignore", under="ignore"):
        penalties = (base**alpha).astype("float32")
    if not (np.isfinite(penalties) & (penalties > 0)).all():
        raise ValueError(
            f"`length_penalty` must give lengths up to {max_new_tokens} "
            "divisors "
            f"that float32 can hold. Received: length_penalty={alpha}"
        )
    return penalties
