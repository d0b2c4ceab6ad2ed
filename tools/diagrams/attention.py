"""Diagrams of attention: scores, weights, heads."""

import numpy as np

from tools.diagrams.drawing import SMALL, Drawing
from tools.diagrams.numbers import softmax


def weighted_sum():
    """Attention as a weighted sum.

    A query has the scores 2, 0 and 1 with three keys. The softmax turns them
    into the weights 0.67, 0.09 and 0.24, which sum to 1. Each weight multiplies
    a value, the vectors (1, 0), (0, 1) and (1, 1), and the sum is the output
    (0.91, 0.33).
    """
    d = Drawing(520, 420)
    scores, values = (2, 0, 1), np.array([(1, 0), (0, 1), (1, 1)])
    weights = softmax(scores)
    query = d.box(60, 190, 92, 44, "query q", "query")
    d.text(262, 20, "score, softmax", size=SMALL, muted=True)
    total = d.circle(400, 325, 18, "+", "value")
    for s in range(3):
        y = 62 + 90 * s
        key = d.box(180, y, 80, 40, f"key k_{s}", "key")
        d.arrow(query.right(), key.left(), role="query")
        d.text(240, y - 14, f"{scores[s]}", size=SMALL)
        weight = d.box(295, y, 70, 40, f"{weights[s]:.2f}", shade=weights[s])
        d.arrow(key.right(), weight.left(), role="weight")
        d.text(349, y, "×")
        a, b = values[s]
        value = d.box(
            430, y, 136, 40, f"value v_{s} ({a}, {b})", "value", size=SMALL
        )
        side = (508, y)
        d.line(value.right(), side, role="value")
    d.arrow((508, 62), (508, 325), total.right(), role="value")
    c = weights @ values
    out = d.box(
        235, 380, 300, 44, f"output c = ({c[0]:.2f}, {c[1]:.2f})", "value"
    )
    d.arrow(total.bottom(), (400, 380), out.right(), role="value")
    d.text(200, 325, "sum of weight × value", size=SMALL, muted=True)
    return d


def score_functions():
    """Dot-product and additive scores.

    On the left, the dot product multiplies query and key feature by feature
    and adds the products; divided by the square root of their number of
    features, it is the scaled dot product. On the right, the additive score
    projects query and key with learned matrices W and U, adds them, applies
    tanh, and multiplies by the learned vector u.
    """
    d = Drawing(520, 430)
    for x, title in ((115, "dot product"), (375, "additive")):
        d.text(x, 20, title, bold=True)
    query = d.box(65, 400, 80, 38, "q_t", "query")
    key = d.box(165, 400, 80, 38, "k_s", "key")
    dot = d.box(115, 265, 150, 42, "sum of q_i k_i", "weight")
    d.arrow(query.top(), dot.bottom(0.167), role="query")
    d.arrow(key.top(), dot.bottom(0.833), role="key")
    scale = d.box(115, 170, 150, 42, "divide by √H", "weight")
    d.arrow(dot.top(), scale.bottom(), role="weight")
    score = d.box(115, 75, 100, 38, "score z_{ts}", "weight")
    d.arrow(scale.top(), score.bottom(), role="weight")
    query = d.box(320, 400, 80, 38, "q_t", "query")
    key = d.box(430, 400, 80, 38, "k_s", "key")
    first = d.box(320, 325, 80, 38, "W", "layer")
    second = d.box(430, 325, 80, 38, "U", "layer")
    d.arrow(query.top(), first.bottom(), role="query")
    d.arrow(key.top(), second.bottom(), role="key")
    plus = d.circle(375, 260, 17, "+", "weight")
    d.arrow(first.top(), (320, 260), plus.left(), role="query")
    d.arrow(second.top(), (430, 260), plus.right(), role="key")
    tanh = d.box(375, 200, 100, 38, "tanh", "weight")
    d.arrow(plus.top(), tanh.bottom(), role="weight")
    last = d.box(375, 137, 100, 38, "· u", "layer")
    d.arrow(tanh.top(), last.bottom(), role="weight")
    score = d.box(375, 75, 100, 38, "score z_{ts}", "weight")
    d.arrow(last.top(), score.bottom(), role="weight")
    d.line((248, 40), (248, 420), dashed=True, width=1)
    return d


def global_local():
    """Global and local attention.

    The weights of one query at position 3 over nine keys, in percent. Global
    attention gives a weight to all keys. Local-m attends to the five keys
    around position 3. Local-p predicts the center 5.2, attends to the keys at
    most 2 away from it, and lowers their weights with the distance from it.
    """
    d = Drawing(520, 390)
    scores = np.array([0.2, 0.9, 0.4, 1.6, 1.1, 2.3, 0.8, 0.1, 0.6])
    position = np.arange(9)
    t, center, radius = 3, 5.2, 2
    near = np.abs(position - t) <= radius
    close = np.abs(position - center) <= radius
    falls = np.exp(-2 * (position - center) ** 2 / radius**2)
    rows = (
        ("global: all keys", position >= 0, 1.0, t),
        ("local-m: 2 keys on each side of t = 3", near, 1.0, t),
        ("local-p: predicts the center 5.2", close, falls, center),
    )
    for row, (title, allowed, factor, middle) in enumerate(rows):
        top = 30 + 118 * row
        d.text(14, top - 8, title, anchor="start", bold=True)
        weights = softmax(np.where(allowed, scores, -np.inf)) * factor
        texts = [f"{100 * w:.0f}" if w > 0 else "" for w in weights]
        shades = [weights / 0.6]
        d.mask(17, top + 12, 54, [allowed], texts=[texts], shades=shades)
        x = 17 + 54 * (middle + 0.5)
        d.arrow((x, top + 88), (x, top + 69), role="query")
    for s in range(9):
        d.text(44 + 54 * s, 368, f"k_{s}", size=SMALL, muted=True)
    return d


def soft_hard():
    """Soft and hard attention.

    A query has the weights 0.10, 0.50, 0.20, 0.15 and 0.05 for five values.
    Soft attention returns the sum of all values times their weights. Hard
    attention samples one of them, with the weights as probabilities, here the
    second, and returns it unchanged.
    """
    d = Drawing(520, 400)
    weights = (0.10, 0.50, 0.20, 0.15, 0.05)
    rows = (
        ("soft: a weighted sum of all values", 0),
        ("hard: one value, sampled", 1),
    )
    for title, row in rows:
        top = 205 * row
        d.text(14, top + 20, title, anchor="start", bold=True)
        out = d.box(
            445,
            top + 100,
            120,
            44,
            "c = v_1" if row else "c = Σ w_s v_s",
            "value",
        )
        for s, weight in enumerate(weights):
            x = 42 + 70 * s
            d.box(
                x, top + 60, 58, 36, f"{weight:.2f}", shade=weight, size=SMALL
            )
            chosen = not row or s == 1
            value = d.box(
                x, top + 112, 58, 36, f"v_{s}", "value" if chosen else "masked"
            )
            if chosen:
                d.line(value.bottom(), (x, top + 160), role="value")
        start = 42 + 70 * (1 if row else 0)
        d.arrow(
            (start, top + 160), (445, top + 160), out.bottom(), role="value"
        )
    return d


def scaled_dot_product():
    """Scaled dot-product attention.

    From bottom to top: queries of shape (T, H) and keys (S, H) are multiplied
    to scores (T, S), divided by the square root of H, and set to minus infinity
    where the mask is False. A softmax over the keys makes weights (T, S), and
    multiplied by the values (S, H') they give the output (T, H').
    """
    d = Drawing(520, 560)
    q = d.box(90, 530, 110, 40, "q (T, H)", "query")
    k = d.box(240, 530, 110, 40, "k (S, H)", "key")
    v = d.box(450, 530, 120, 40, "v (S, H')", "value")
    product = d.box(165, 440, 210, 42, "q k^T", "weight")
    d.arrow(q.top(), product.bottom(0.143), role="query")
    d.arrow(k.top(), product.bottom(0.857), role="key")
    scale = d.box(165, 355, 210, 42, "divide by √H", "weight")
    mask = d.box(165, 270, 210, 42, "−∞ where not allowed", "masked")
    soft = d.box(165, 185, 210, 42, "softmax over keys", "weight")
    total = d.box(300, 100, 200, 42, "weights × v", "value")
    for low, high in ((product, scale), (scale, mask), (mask, soft)):
        d.arrow(low.top(), high.bottom(), role="weight")
    d.text(179, 397, "scores (T, S)", size=SMALL, muted=True, anchor="start")
    given = d.box(390, 270, 130, 42, "mask (T, S)", "masked")
    d.arrow(given.left(), mask.right(), role="masked")
    d.arrow(soft.top(), (165, 100), total.left(), role="weight")
    d.text(30, 128, "weights (T, S)", size=SMALL, muted=True, anchor="start")
    d.arrow(v.top(0.75), (480, 100), total.right(), role="value")
    out = d.box(300, 30, 200, 42, "output (T, H')", "value")
    d.arrow(total.top(), out.bottom(), role="value")
    return d


def multi_head():
    """Multi-head attention.

    From bottom to top: queries come from x of shape (T, D), keys and values
    from another or the same sequence (S, D). Three linear layers make q, k and
    v for each of N heads. Each head applies scaled dot-product attention. The
    results are concatenated to (T, N H') and a last linear layer returns
    (T, D).
    """
    d = Drawing(520, 540)
    out = d.box(260, 28, 150, 38, "output (T, D)")
    last = d.box(260, 108, 200, 42, "linear W^O", "layer")
    join = d.box(260, 190, 200, 42, "concatenate heads", "token")
    d.arrow(last.top(), out.bottom())
    d.arrow(join.top(), last.bottom())
    d.text(274, 149, "(T, N H')", size=SMALL, muted=True, anchor="start")
    for shift in (16, 8, 0):
        heads = d.box(260 + shift, 292 - shift, 380, 56, "", "weight")
    d.text(260, 292, "scaled dot-product attention")
    d.text(494, 292, "× N", bold=True)
    d.arrow((260, 248), join.bottom(), role="weight")
    sources = (
        (110, "query", "W^Q", "q (N, T, H)", "x (T, D)"),
        (260, "key", "W^K", "k (N, S, H)", "m (S, D)"),
        (410, "value", "W^V", "v (N, S, H')", "m (S, D)"),
    )
    for x, role, name, shape, source in sources:
        for shift in (12, 6, 0):
            linear = d.box(x + shift, 424 - shift, 100, 40, "", "layer")
        d.text(x, 424, f"linear {name}")
        entry = d.box(x, 512, 100, 38, source)
        d.arrow(entry.top(), linear.bottom())
        d.arrow((x, 392), (x, heads.bottom()[1]), role=role)
        d.text(x + 10, 356, shape, size=SMALL, muted=True, anchor="start")
    return d


def shared_heads():
    """Heads that share keys and values.

    Four query heads. In multi-head attention each has its own head of keys and
    values, K = 4. In grouped-query attention two query heads share one, K = 2.
    In multi-query attention all four share one, K = 1. A cache stores 2 K H
    numbers per token.
    """
    d = Drawing(520, 450)
    rows = (
        (4, "multi-head (MHA): K = 4"),
        (2, "grouped-query (GQA): K = 2"),
        (1, "multi-query (MQA): K = 1"),
    )
    for row, (K, title) in enumerate(rows):
        top = 152 * row
        d.text(14, top + 20, title, anchor="start", bold=True)
        for n in range(4):
            x = 70 + 126 * n
            query = d.box(x, top + 52, 80, 32, f"q_{n}", "query")
            k = n * K // 4
            group = [70 + 126 * i for i in range(4) if i * K // 4 == k]
            middle = sum(group) / len(group)
            d.arrow(
                (middle + (x - middle) * 0.12, top + 108),
                query.bottom(),
                role="key",
            )
        for k in range(K):
            group = [70 + 126 * i for i in range(4) if i * K // 4 == k]
            middle = sum(group) / len(group)
            d.box(middle - 23, top + 124, 44, 32, f"k_{k}", "key")
            d.box(middle + 23, top + 124, 44, 32, f"v_{k}", "value")
    return d


def blockwise_attention():
    """Blockwise attention.

    The scores of all queries and keys, as four rows and four columns of blocks.
    The kernel computes one block at a time, here the last one of the last row,
    and keeps the largest score so far, the sum and the output of these queries.
    Blocks above the diagonal are masked and skipped. No table of all weights is
    stored.
    """
    d = Drawing(520, 380)
    cell, left, top = 62, 70, 46
    d.text(left + 2 * cell, 20, "keys, in blocks", muted=True, size=SMALL)
    for t in range(4):
        d.text(
            left - 12,
            top + cell * (t + 0.5),
            f"q_{t}",
            anchor="end",
            muted=True,
        )
        for s in range(4):
            x, y = left + cell * (s + 0.5), top + cell * (t + 0.5)
            now = (t, s) == (3, 3)
            text = "now" if now else "" if s <= t else "skip"
            shade = (0.9 if now else 0.4) if s <= t else None
            d.box(
                x,
                y,
                cell,
                cell,
                text,
                "masked",
                size=SMALL,
                round_=0,
                shade=shade,
                bold=now,
            )
    state = d.box(
        430, 263, 150, 84, "running\nmaximum, sum\nand output", "memory"
    )
    d.arrow((left + 4 * cell, 263), state.left(), role="memory", width=2.6)
    d.text(430, 202, "of the queries q_3", muted=True, size=SMALL)
    d.text(260, 330, "scores of one block at a time:", size=SMALL)
    d.text(260, 354, "memory grows with T + S, not with T × S", size=SMALL)
    return d
