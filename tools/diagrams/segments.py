"""Diagrams of Transformer-XL and XLNet."""

import numpy as np

from tools.diagrams.drawing import SMALL, Drawing


def segment_memory():
    """Segments with a memory.

    Nine tokens in three segments of three, read by two blocks. The last vector
    of the second block is computed from the current segment and from the
    memory, the three vectors of the first block before it. Each of those was
    computed with a memory, too. So the last vector depends on all nine tokens.
    No gradient flows into the memory.
    """
    d = Drawing(520, 360)
    xs = [96 + 50 * i for i in range(9)]
    levels = (286, 176, 66)
    reads = [
        ((2, 8), [(1, s) for s in range(3, 9)]),
        *[
            ((1, t), [(0, s) for s in range(t // 3 * 3 - 3, t + 1)])
            for t in (3, 8)
        ],
    ]
    for (level, t), sources in reads:
        strong = (level, t) in ((2, 8), (1, 3))
        for low, s in sources:
            role = "memory" if s // 3 < t // 3 else "weight"
            d.arrow(
                (xs[s], levels[low] - 15),
                (xs[t], levels[level] + 15),
                role=role,
                width=2.2 if strong else 1.2,
            )
    for level, y in enumerate(levels):
        for t, x in enumerate(xs):
            if level == 2 and t < 6:
                continue
            old = t < 6
            role = "memory" if old else ("weight" if level else "token")
            d.circle(x, y, 15, "", role)
    for i, name in enumerate(("segment 0", "segment 1", "segment 2")):
        d.text(xs[1] + 150 * i, 334, name, size=SMALL)
    d.text(8, 66, "block 2", anchor="start", muted=True, size=SMALL)
    d.text(8, 176, "block 1", anchor="start", muted=True, size=SMALL)
    d.text(8, 286, "tokens", anchor="start", muted=True, size=SMALL)
    d.text(8, 20, "pink: memory, no gradient", anchor="start", size=SMALL)
    return d


def relative_shift():
    """Relative shift.

    Three queries, and five keys of which two are memory. Above, each query is
    multiplied with the vectors of the distances 4, 3, 2, 1 and 0, which is one
    matrix product: every row has the same order. Below, row t has moved to the
    left by 2 - t cells, so that the columns are keys. Query 0 now has the
    distances 2, 1 and 0 for the keys 0, 1 and 2, and later keys are masked.
    """
    d = Drawing(520, 510)
    T, M = 3, 2
    S = M + T
    cell, left = 58, 108
    shades = np.tile(np.linspace(0.1, 0.9, S), (T, 1))
    texts = [[str(S - 1 - j) for j in range(S)] for _ in range(T)]
    d.text(14, 20, "ordered by distance", anchor="start", bold=True)
    d.mask(left, 40, cell, np.ones((T, S), bool), texts=texts, shades=shades)
    for t in range(T):
        y = 69 + cell * t
        d.text(90, y, f"q_{t}", anchor="end", muted=True)
        move = T - 1 - t
        words = f"left by {move}" if move else "stays"
        d.text(left + S * cell + 12, y, words, anchor="start", size=SMALL)
    d.arrow((left + 2.5 * cell, 224), (left + 2.5 * cell, 258), role="weight")
    d.text(14, 250, "ordered by key", anchor="start", bold=True)
    keys = np.arange(S)
    distance = np.arange(T)[:, None] + M - keys
    allowed = distance >= 0
    texts = [[str(n) if n >= 0 else "" for n in row] for row in distance]
    d.mask(
        left,
        302,
        cell,
        allowed,
        texts=texts,
        shades=0.1 + 0.8 * (S - 1 - distance) / (S - 1),
    )
    for t in range(T):
        d.text(90, 331 + cell * t, f"q_{t}", anchor="end", muted=True)
    for s in range(S):
        d.text(left + cell * (s + 0.5), 282, f"k_{s}", muted=True)
    d.text(left + cell, 496, "memory", size=SMALL, muted=True)
    d.text(left + 3.5 * cell, 496, "segment", size=SMALL, muted=True)
    return d


def two_streams():
    """Two streams of XLNet.

    Four tokens, predicted in the order 2, 0, 1, 3; the figure shows the vectors
    of token 1, the third in the order. Its content vector h_1 attends to the
    content vectors of the tokens 2 and 0, which are earlier in the order, and
    to itself. Its query vector g_1 attends to the same two, but not to h_1, so
    it does not know the token that it predicts. Token 3 is later in the order.
    """
    d = Drawing(520, 590)
    panels = (
        ("content stream: sees token 1", "h_1", (0, 1, 2)),
        ("query stream: does not see token 1", "g_1", (0, 2)),
    )
    order = (2, 3, 1, 4)
    for i, (title, name, seen) in enumerate(panels):
        top = 300 * i
        d.text(14, top + 20, title, anchor="start", bold=True)
        out = d.box(330, top + 66, 100, 40, name, "residual")
        block = d.box(330, top + 142, 300, 42, "block, same weights", "weight")
        d.arrow(block.top(), out.bottom(), role="residual")
        for s in range(4):
            x = 150 + 100 * s
            content = d.box(
                x, top + 240, 74, 38, f"h_{s}", "key" if s in seen else "masked"
            )
            d.text(x, top + 274, str(order[s]), muted=True, size=SMALL)
            if s in seen:
                end = 210 + 80 * s
                d.arrow(content.top(), (end, block.bottom()[1]), role="key")
        query = d.box(52, top + 142, 76, 38, name, "query")
        d.arrow(query.right(), block.left(), role="query")
        d.text(
            14, top + 274, "order o_t", anchor="start", muted=True, size=SMALL
        )
    return d
