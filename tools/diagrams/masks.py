"""Diagrams of masks."""

import numpy as np

from tools.diagrams.drawing import SMALL, Drawing
from tools.diagrams.numbers import softmax


def causal_mask():
    """Causal mask.

    Five queries in rows and five keys in columns, for the tokens the, cat, sat
    on and it. Each query attends to its own position and to earlier ones: the
    allowed cells form the lower triangle, and show the weights of equal scores,
    such as 1, 1/2 and 1/3. The cells above the diagonal are masked.
    """
    d = Drawing(480, 420)
    words = ("the", "cat", "sat", "on", "it")
    allowed = np.tri(5, dtype=bool)
    shares = ("1", "1/2", "1/3", "1/4", "1/5")
    texts = [[shares[t] if s <= t else "" for s in range(5)] for t in range(5)]
    shades = [softmax(np.where(row, 0.0, -np.inf)) for row in allowed]
    d.text(292, 18, "keys", muted=True, size=SMALL)
    d.text(106, 44, "queries", muted=True, size=SMALL, anchor="end")
    for i, word in enumerate(words):
        d.text(152 + 66 * i, 44, word)
        d.text(106, 94 + 66 * i, word, anchor="end")
    d.mask(119, 61, 66, allowed, texts=texts, shades=shades)
    d.text(292, 404, "weights if all scores are equal", muted=True, size=SMALL)
    return d


def padding_mask():
    """Padding mask.

    A batch of two sentences: the cat sleeps, with two padding tokens, and it
    sat on a mat. The table of the first sentence: its three tokens attend to
    its three tokens. The columns of padding keys are masked, and so are the
    rows of padding queries.
    """
    d = Drawing(520, 470)
    batch = (("the", "cat", "sleeps", "", ""), ("it", "sat", "on", "a", "mat"))
    for b, row in enumerate(batch):
        for s, word in enumerate(row):
            d.box(
                140 + 80 * s,
                30 + 52 * b,
                76,
                40,
                word or "0",
                "token" if word else "masked",
            )
        d.text(
            14, 30 + 52 * b, f"row {b}", anchor="start", muted=True, size=SMALL
        )
    d.text(14, 130, "mask of row 0", anchor="start", bold=True)
    real = np.array([bool(word) for word in batch[0]])
    allowed = real[:, None] & real[None]
    for i, word in enumerate(batch[0]):
        d.text(188 + 58 * i, 148, word or "0", size=SMALL)
        d.text(146, 193 + 58 * i, word or "0", size=SMALL, anchor="end")
    d.mask(159, 164, 58, allowed)
    return d


def visibility():
    """Positions instead of masks.

    A packed row with the segments 1, 1, 1, 2, 2 and padding has the positions
    0, 1, 2, 0, 1 and -1. Query t may attend to key s if both positions are at
    least 0, the segments are equal, and, if causal, the position of t is not
    smaller. The resulting table has two small triangles, and an empty row and
    an empty column for the padding.
    """
    d = Drawing(520, 530)
    words = ("the", "cat", "sleeps", "it", "sat", "")
    segments = np.array([1, 1, 1, 2, 2, 0])
    positions = np.array([0, 1, 2, 0, 1, -1])
    for label, y in (("token", 26), ("segment", 66), ("position", 106)):
        d.text(14, y, label, anchor="start", muted=True, size=SMALL)
    for i, word in enumerate(words):
        x, role = 130 + 70 * i, "token" if word else "masked"
        d.box(x, 26, 66, 36, word or "0", role, size=SMALL)
        d.text(x, 66, str(segments[i]))
        d.text(x, 106, str(positions[i]).replace("-", "−"), bold=True)
    allowed = (
        (positions[:, None] >= 0)
        & (positions[None] >= 0)
        & (segments[:, None] == segments[None])
        & (positions[:, None] >= positions[None])
    )
    d.arrow((300, 128), (300, 160), role="weight")
    d.mask(159, 172, 47, allowed)
    for i in range(6):
        d.text(
            142, 196 + 47 * i, str(positions[i]).replace("-", "−"), size=SMALL
        )
    d.text(14, 312, "queries", anchor="start", muted=True, size=SMALL)
    d.text(300, 474, "both positions ≥ 0, equal segments,", size=SMALL)
    d.text(300, 498, "position of query ≥ position of key", size=SMALL)
    return d


def four_masks():
    """Four masks.

    Tables of six queries in rows and six keys in columns. Padding: the columns
    and rows of the last two tokens are masked. Causal: the lower triangle is
    allowed. Causal window of three: a band below the diagonal. Packing: one
    block for each of two sentences.
    """
    d = Drawing(520, 580)
    t, s = np.indices((6, 6))
    masks = (
        ("padding", (t < 4) & (s < 4)),
        ("causal", s <= t),
        ("causal, window 3", (s <= t) & (t - s < 3)),
        ("packing", (t < 3) == (s < 3)),
    )
    for i, (name, allowed) in enumerate(masks):
        x, y = 20 + 260 * (i % 2), 46 + 285 * (i // 2)
        d.text(x + 111, y - 22, name, bold=True)
        d.mask(x, y, 37, allowed)
    return d


def three_objectives():
    """What GPT, BERT and XLNet see.

    Tables with a row for each predicted token and a column for each token. GPT
    predicts every token from those before it. BERT predicts the masked tokens 1
    and 3 from all tokens that are not masked, so neither sees the other. XLNet
    predicts in the random order 2, 0, 4, 1, 3: each token from those that come
    earlier in the order, on both sides.
    """
    d = Drawing(520, 600)
    order = np.array([1, 3, 0, 4, 2])
    t, s = np.indices((5, 5))
    hidden = np.isin(s, (1, 3))
    every = range(5)
    tables = (
        ("GPT", "from left to right:\nsees earlier tokens", s < t, every, 42),
        (
            "BERT",
            "x_1 and x_3 are masked:\nneither sees the other",
            ~hidden,
            (1, 3),
            285,
        ),
        (
            "XLNet",
            "order 2, 0, 4, 1, 3:\nsees the tokens\nearlier in the order",
            order[s] < order[t],
            every,
            400,
        ),
    )
    for name, words, allowed, rows, y in tables:
        for j in range(5):
            d.text(83 + 38 * j, y - 16, f"x_{j}", size=SMALL, muted=True)
        for i, j in enumerate(rows):
            d.text(52, y + 19 + 38 * i, f"x_{j}", size=SMALL, anchor="end")
        d.mask(64, y, 38, allowed[list(rows)])
        d.text(284, y + 10, name, bold=True, anchor="start", size=20)
        lines = words.count("\n")
        d.text(284, y + 42 + 10 * lines, words, anchor="start")
    return d


def padding_leak():
    """A padding leak.

    The same sentence, the cat, twice, with two padded positions. Their contents
    are 0 and 0 in the first row, and 7 and 3 in the second. If the outputs at
    the two tokens are equal, the layer respects the mask; if they differ, it
    leaks.
    """
    d = Drawing(520, 420)
    for row, padding in enumerate(("0 0", "7 3")):
        left = 262 * row
        layer = d.box(left + 129, 210, 236, 46, "layer", "weight", bold=True)
        words = ("the", "cat", *padding.split())
        for i, word in enumerate(words):
            x = left + 42 + 58 * i
            token = i < 2
            entry = d.box(x, 300, 50, 38, word, "token" if token else "masked")
            d.arrow(entry.top(), (x, layer.bottom()[1]))
            if token:
                out = d.box(x, 120, 50, 38, f"h_{i}", "residual")
                d.arrow((x, layer.top()[1]), out.bottom())
        d.text(
            left + 158, 344, "padding", muted=True, size=SMALL, anchor="start"
        )
    verdict = d.box(
        260, 40, 330, 46, "equal: no leak; different: a leak", "output"
    )
    d.arrow((71, 101), (71, 40), verdict.left())
    d.arrow((333, 101), (333, 63))
    d.text(260, 394, "only the contents of the padding differ", size=SMALL)
    return d
