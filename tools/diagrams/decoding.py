"""Diagrams of decoding."""

import numpy as np

from tools.diagrams.drawing import SMALL, Drawing
from tools.diagrams.numbers import softmax


def kv_cache():
    """KV cache, step by step.

    Three decoding steps. In each step the model reads one token, and computes
    its query, key and value. The key and the value are appended to the cache,
    which has four slots. The query attends to all slots written so far: one in
    the first step, two in the second, three in the third. Nothing is computed
    again for earlier tokens.
    """
    d = Drawing(520, 560)
    words = ("[start]", "este", "gato", "duerme")
    for t in range(3):
        top = 8 + 184 * t
        d.text(14, top + 14, f"step {t}", anchor="start", bold=True)
        token = d.box(66, top + 150, 104, 36, words[t])
        query = d.box(66, top + 72, 104, 38, f"q_{t}", "query")
        d.arrow(token.top(), query.bottom())
        for s in range(4):
            x = 216 + 78 * s
            for letter, role, y in (("k", "key", 46), ("v", "value", 98)):
                if s < t:
                    d.box(x, top + y, 72, 40, f"{letter}_{s}", "memory")
                elif s == t:
                    d.box(x, top + y, 72, 40, f"{letter}_{s}", role)
                else:
                    d.box(x, top + y, 72, 40, "", "masked", dashed=True)
        x = 216 + 78 * t
        d.arrow(token.right(), (x, top + 150), (x, top + 119), role="value")
        d.arrow(query.right(), (176, top + 72), role="query")
    d.text(
        498, 18, "pink: from the cache", anchor="end", muted=True, size=SMALL
    )
    return d


def beam_search_tree():
    """Beam search with two beams.

    A tree of three steps. First the has probability 0.50, a 0.40 and it 0.10;
    the first two are kept. Of their continuations, a cat with 0.36 and the cat
    with 0.20 are kept. Of theirs, a cat sleeps with 0.22 is the best, then the
    cat sleeps with 0.16. Greedy search would have continued with the only, and
    missed the best sentence. Hypotheses that are dropped are gray.
    """
    d = Drawing(520, 480)
    first = {"the": 0.5, "a": 0.4, "it": 0.1}
    second = {
        "the": {"cat": 0.4, "dog": 0.36, "mat": 0.24},
        "a": {"cat": 0.9, "dog": 0.06, "mat": 0.04},
    }
    third = {
        "the cat": {"sleeps": 0.8, "sat": 0.15, "ran": 0.05},
        "a cat": {"sleeps": 0.6, "sat": 0.3, "ran": 0.1},
    }
    root = d.box(42, 240, 68, 38, "[start]", size=SMALL)
    beams = [("", 1.0, root)]
    columns = (
        (150, 96, lambda text: first),
        (290, 100, second.get),
        (442, 128, third.get),
    )
    for x, width, following in columns:
        found = [
            (f"{text} {word}".strip(), p * q, word, parent)
            for text, p, parent in beams
            for word, q in following(text).items()
        ]
        kept = sorted(found, key=lambda one: -one[1])[:2]
        step = 120 if len(found) == 3 else 74
        start = 240 - step * (len(found) - 1) / 2
        beams = []
        for i, one in enumerate(found):
            text, p, word, parent = one
            y = start + step * i
            keep = one in kept
            node = d.box(
                x,
                y,
                width,
                40,
                f"{word} {p:.2f}",
                "output" if keep else "masked",
                bold=keep,
                size=SMALL,
                dashed=not keep,
            )
            d.arrow(
                parent.right(),
                node.left(),
                role="output" if keep else "masked",
                width=2.4 if keep else 1.2,
            )
            if keep:
                beams.append((text, p, node))
    return d


def sampling():
    """Temperature, top-k and top-p.

    Probabilities of six next tokens, in percent: 47, 26, 14, 8, 4 and 1. With
    temperature 0.5 they are sharper: 70, 21, 6, 2, 1 and 0. Top-k with k = 3
    keeps the three most probable tokens, as 54, 30 and 16. Top-p with p = 0.7
    keeps the smallest set whose probability reaches 0.7, here two tokens, as 64
    and 36.
    """
    d = Drawing(520, 440)
    logits = np.log([0.47, 0.26, 0.14, 0.08, 0.04, 0.01])
    p = softmax(logits)
    before = np.cumsum(p) - p
    rows = (
        ("probabilities", logits),
        ("temperature 0.5", logits / 0.5),
        ("top-k, k = 3", np.where(np.arange(6) < 3, logits, -np.inf)),
        ("top-p, p = 0.7", np.where(before < 0.7, logits, -np.inf)),
    )
    words = ("cat", "dog", "mat", "tree", "it", "on")
    for i, word in enumerate(words):
        d.text(57 + 81 * i, 20, word, muted=True)
    for row, (name, scores) in enumerate(rows):
        y = 60 + 98 * row
        d.text(17, y, name, anchor="start", bold=True)
        probabilities = softmax(scores)
        texts = [f"{100 * q:.0f} %" if q > 0 else "" for q in probabilities]
        for i, q in enumerate(probabilities):
            x = 57 + 81 * i
            d.box(
                x,
                y + 40,
                81,
                46,
                texts[i],
                "masked",
                round_=0,
                shade=q if q > 0 else None,
            )
    return d
