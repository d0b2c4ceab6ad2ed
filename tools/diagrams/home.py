"""Diagrams of the home page."""

import json

import numpy as np

from tools.diagrams import ROOT
from tools.diagrams.drawing import SMALL, Drawing
from tools.diagrams.numbers import softmax

_DECODING = ROOT / "docs" / "benchmarks" / "decoding.json"


def layer_in_a_model():
    """A layer in a model.

    Vectors of shape (B, T, D) enter the layer MultiHeadAttention, and vectors
    of the same shape leave it.
    """
    d = Drawing(240, 170)
    layer = d.box(120, 85, 208, 50, "MultiHeadAttention", "weight", bold=True)
    entry = d.box(120, 150, 110, 34, "(B, T, D)", "residual")
    out = d.box(120, 20, 110, 34, "(B, T, D)", "residual")
    d.arrow(entry.top(), layer.bottom(), role="residual")
    d.arrow(layer.top(), out.bottom(), role="residual")
    return d


def weights_of_a_head():
    """Attention weights of a head.

    A table of five queries and five keys. The weights of each query are the
    softmax of its scores with the keys up to its own position, and later keys
    are masked.
    """
    d = Drawing(240, 170)
    scores = np.array(
        [
            (0, 0, 0, 0, 0),
            (2, 1, 0, 0, 0),
            (0, 3, 1, 0, 0),
            (3, 0, 1, 0, 0),
            (0, 1, 2, 1, 3),
        ]
    )
    allowed = np.tri(5, dtype=bool)
    weights = [softmax(z) for z in np.where(allowed, scores, -np.inf)]
    d.mask(40, 5, 32, allowed, shades=weights)
    return d


def two_ways_to_the_same_numbers():
    """Two ways to the same numbers.

    The function ops.attend of the library and plain NumPy loops compute the
    same numbers, which the tests compare on all backends.
    """
    d = Drawing(240, 170)
    ours = d.box(120, 25, 190, 40, "ops.attend", "weight", bold=True)
    loops = d.box(120, 145, 190, 40, "NumPy loops", "layer")
    same = d.box(120, 85, 110, 40, "equal", "token")
    d.arrow(ours.bottom(), same.top())
    d.arrow(loops.top(), same.bottom())
    return d


def decoding_speed():
    """Speed of decoding.

    Tokens per second on a processor, for 32 sentences with greedy search, of
    this library, KerasHub and bare loops on each backend, and of transformers
    and CTranslate2. The numbers are those of the benchmark page.
    """
    results = json.loads(_DECODING.read_text("utf-8"))["results"]
    (found,) = (r for r in results if r["case"]["name"] == "batch 32, greedy")
    case = found["case"]
    tokens = case["rows"] * case["new"]
    speeds = {
        one["name"]: tokens / one["median_seconds"]
        for one in found["contestants"]
        if "tutorial" not in one["name"] and "without" not in one["name"]
    }
    order = sorted(speeds, key=lambda name: -speeds[name])
    d = Drawing(520, 30 * len(order) + 36)
    for row, name in enumerate(order):
        y = 20 + 30 * row
        ours = name.startswith("keras_attn")
        width = 200 * speeds[name] / max(speeds.values())
        label = name.replace("_", "~")
        d.text(238, y, label, anchor="end", size=SMALL, bold=ours)
        role = "weight" if ours else "token"
        d.box(246 + width / 2, y, width, 22, "", role, round_=2)
        d.text(
            254 + width, y, f"{speeds[name]:,.0f}", anchor="start", size=SMALL
        )
    d.text(260, d.height - 14, "tokens per second", size=SMALL, muted=True)
    return d
