"""Diagrams of positions."""

import math

import numpy as np

from tools.diagrams.drawing import SMALL, Drawing


def adding_positions():
    """Adding positions to embeddings.

    Three tokens: the, cat, sleeps. The embedding E of each token has four
    numbers. The positional encoding of the positions 0, 1 and 2 is added, for
    position 1 the numbers 0.84, 0.54, 0.01 and 1. The sums are the input of
    the first block.
    """
    d = Drawing(520, 400)
    for t, word in enumerate(("the", "cat", "sleeps")):
        y = 100 + 132 * t
        token = d.box(52, y, 84, 38, word)
        entry = d.box(184, y, 116, 38, f"E[{word}]", "layer")
        d.arrow(token.right(), entry.left())
        plus = d.circle(310, y, 17, "+", "residual")
        d.arrow(entry.right(), plus.left(), role="residual")
        for i, value in enumerate(_sinusoid(t, 4)):
            text = f"{value:.2f}".replace("0.", ".").replace("-", "−")
            text = f"{value:.0f}" if abs(value - round(value)) < 0.005 else text
            x = 238 + 48 * i
            d.box(x, y - 66, 48, 34, text, "position", size=SMALL, round_=0)
        d.text(162, y - 66, f"PE[{t}]", size=SMALL, muted=True)
        d.arrow((310, y - 49), plus.top(), role="position")
        out = d.box(440, y, 110, 40, f"h_{t}", "residual")
        d.arrow(plus.right(), out.left(), role="residual", width=2.6)
    return d


def sinusoids_as_clocks():
    """Sinusoids as clock hands.

    Three rows of six clocks for the positions 0 to 5. The hand of the first row
    turns by one radian per position, that of the second by 0.32 and that of the
    third by 0.1. Sine and cosine of its angle are two features of the
    positional encoding. Fast hands tell neighbors apart, slow hands tell far
    positions apart.
    """
    d = Drawing(520, 400)
    for i in range(3):
        rate = 10000 ** (-2 * i / 16)
        y = 85 + 108 * i
        d.text(14, y, f"i = {i}\n{rate:.2g} rad", anchor="start", size=SMALL)
        for pos in range(6):
            x = 138 + 68 * pos
            d.circle(x, y, 30, "", "position")
            angle = pos * rate
            tip = (x + 25 * math.sin(angle), y - 25 * math.cos(angle))
            d.arrow((x, y), tip, role="position", width=2.4)
    for pos in range(6):
        d.text(138 + 68 * pos, 30, str(pos))
    d.text(14, 30, "position", anchor="start", muted=True, size=SMALL)
    d.text(308, 376, "sin and cos of the angle are two features", size=SMALL)
    return d


def rotary():
    """Rotary positions.

    Two panels, each with a query and a key as hands on a circle. On the left,
    the query has position 3 and the key position 1; on the right, 5 and 3. Each
    hand is turned by half a radian per position. The distance is 2 in both
    panels, so the angle between query and key is the same, and so is their
    score.
    """
    d = Drawing(520, 350)
    query, key, rate = 0.2, 0.5, 0.5
    for panel, (t, s) in enumerate(((3, 1), (5, 3))):
        x, y, radius = 130 + 260 * panel, 150, 96
        d.circle(x, y, radius, "", "token")
        for name, start, pos, role in (
            ("q", query, t, "query"),
            ("k", key, s, "key"),
        ):
            for angle, dashed, width in (
                (start, True, 1.6),
                (start + rate * pos, False, 3.4),
            ):
                tip = (
                    x + (radius - 4) * math.cos(angle),
                    y - (radius - 4) * math.sin(angle),
                )
                d.arrow((x, y), tip, role=role, dashed=dashed, width=width)
            angle = start + rate * pos
            far = radius + 20
            d.text(
                x + far * math.cos(angle),
                y - far * math.sin(angle),
                name,
                bold=True,
            )
        d.text(x, 282, f"q at {t}, k at {s}")
        difference = abs(query - key + rate * (t - s))
        d.text(x, 304, f"angle {difference:.1f}", muted=True, size=SMALL)
    d.text(260, 334, "dashed: before the rotation", muted=True, size=SMALL)
    return d


def relative_positions():
    """Relative positions.

    A table of five queries in rows and five keys in columns. Each cell has the
    distance t - s of query and key, from -4 to 4. Every diagonal has a single
    distance, so all positions share what is learned for it. ALiBi subtracts a
    multiple of the distance from the score: keys nearby are favored.
    """
    d = Drawing(520, 390)
    t, s = np.indices((5, 5))
    distance = t - s
    texts = [[f"{n}".replace("-", "−") for n in row] for row in distance]
    shades = 1 - np.abs(distance) / 5
    for i in range(5):
        d.text(116 + 62 * i, 20, f"k_{i}", muted=True)
        d.text(66, 69 + 62 * i, f"q_{i}", muted=True, anchor="end")
    d.mask(
        85, 38, 62, np.ones((5, 5), bool), texts=texts, shades=shades, size=18
    )
    d.text(410, 110, "distance\nt − s", anchor="start", size=SMALL)
    d.text(
        410, 230, "one value\nfor each\ndiagonal", anchor="start", size=SMALL
    )
    return d


def order_is_lost():
    """Attention without positions.

    The words dog, bites and man, and the same words in the order man, bites,
    dog. Without positions, attention returns the same vector for each word in
    both orders: h of dog, of bites and of man are only exchanged.
    """
    d = Drawing(520, 420)
    for row, words in enumerate(
        (("dog", "bites", "man"), ("man", "bites", "dog"))
    ):
        top = 212 * row
        box = d.box(
            260, top + 100, 460, 42, "self-attention, no positions", "weight"
        )
        for i, word in enumerate(words):
            x = 95 + 165 * i
            entry = d.box(x, top + 170, 100, 36, word)
            out = d.box(x, top + 30, 110, 36, f"h({word})", "residual")
            d.arrow(entry.top(), (x, box.bottom()[1]))
            d.arrow((x, box.top()[1]), out.bottom())
    return d


def _sinusoid(position, D):
    values = []
    for i in range(D // 2):
        angle = position / 10000 ** (2 * i / D)
        values += [math.sin(angle), math.cos(angle)]
    return values
