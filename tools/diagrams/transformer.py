"""Diagrams of the Transformer and its parts."""

import itertools

import numpy as np

from tools.diagrams.drawing import SMALL, Box, Drawing


def encoder_block():
    """Encoder block, post-norm.

    From bottom to top: x of shape (B, S, D) is the source of queries, keys and
    values of multi-head self-attention. The residual connection adds x to the
    result, and a layer normalization follows. The feed-forward network comes
    with another residual connection and normalization. The output has the shape
    of the input, (B, S, D).
    """
    d = Drawing(460, 520)
    x = 200
    entry = d.box(x, 496, 150, 38, "x (B, S, D)", "residual")
    y = 450
    d.line(entry.top(), (x, y), role="residual", width=3)
    y = _sublayer(d, x, y, "self-attention", "weight", self_attention=True)
    y = _sublayer(d, x, y, "feed-forward", "layer")
    out = d.box(x, 26, 150, 38, "(B, S, D)", "residual")
    d.arrow((x, y), out.bottom(), role="residual", width=3)
    return d


def decoder_block():
    """Decoder block, post-norm.

    From bottom to top: y of shape (B, T, D) is the source of queries, keys and
    values of causal self-attention. Then cross-attention takes its queries from
    the result, and its keys and values from the memory (B, S, D), the output of
    the encoder. The feed-forward network is last. A residual connection and a
    layer normalization follow each of the three.
    """
    d = Drawing(520, 720)
    x = 290
    entry = d.box(x, 696, 150, 38, "y (B, T, D)", "residual")
    y = 650
    d.line(entry.top(), (x, y), role="residual", width=3)
    y = _sublayer(
        d, x, y, "causal self-attention", "weight", self_attention=True
    )
    memory = d.box(65, y - 14, 118, 58, "memory\n(B, S, D)", "memory")
    y = _sublayer(d, x, y, "cross-attention", "weight", memory=memory)
    y = _sublayer(d, x, y, "feed-forward", "layer")
    out = d.box(x, 26, 150, 38, "(B, T, D)", "residual")
    d.arrow((x, y), out.bottom(), role="residual", width=3)
    return d


def transformer():
    """The Transformer.

    On the left, the encoder: source ids (B, S) are embedded, positions are
    added, and a stack of blocks of self-attention and feed-forward networks
    makes the memory (B, S, D). On the right, the decoder: target ids (B, T) are
    embedded, positions are added, and each block has causal self-attention,
    cross-attention, whose keys and values come from the memory, and a
    feed-forward network. A residual connection and a layer normalization follow
    each. The embedding table, transposed, makes the logits (B, T, V). Each box
    leads to the page that explains it, and to its entry in the reference.
    """
    d = Drawing(520, 812)
    left, right = 122, 386
    blocks = "../tutorials/blocks/index.html"
    attention = (
        "../tutorials/multi_head/index.html",
        "layers.html#keras_attn.layers.MultiHeadAttention",
    )
    tops = {}
    for x, name, ids in (
        (left, "encoder", "source ids (B, S)"),
        (right, "decoder", "target ids (B, T)"),
    ):
        entry = d.box(x, 788, 170, 36, ids)
        embed = _linked(
            d,
            x,
            726,
            "embedding",
            "layer",
            "../tutorials/translate/index.html#model",
            "layers.html#keras_attn.layers.TokenEmbedding",
        )
        d.arrow(entry.top(), embed.bottom())
        place = _linked(
            d,
            x,
            666,
            "+ positions",
            "position",
            "../tutorials/positions/index.html",
            "layers.html#keras_attn.layers.PositionalEmbedding",
        )
        d.arrow(embed.top(), place.bottom(), role="residual")
        encoder = name == "encoder"
        parts = [
            (
                "self-\nattention" if encoder else "causal self-\nattention",
                "weight",
            ),
            *([] if encoder else [("cross-\nattention", "weight")]),
            ("feed-\nforward", "layer"),
        ]
        y = 632
        d.line(place.top(), (x, y), role="residual", width=2.6)
        for i, (part, role) in enumerate(parts):
            links = (
                attention
                if role == "weight"
                else (
                    f"{blocks}#feed-forward-network",
                    "layers.html#keras_attn.layers.FeedForward",
                )
            )
            layer = _linked(d, x, y - 50, part, role, *links, height=50)
            if part.startswith("cross"):
                d.arrow((x, y), (x + 48, y), (x + 48, y - 25), role="query")
                tops["cross"] = y
            elif role == "weight":
                for shift, arm in ((-48, "query"), (0, "key"), (48, "value")):
                    bend = [(x, y)] if not shift else [(x, y), (x + shift, y)]
                    d.arrow(*bend, (x + shift, y - 25), role=arm)
            else:
                d.arrow((x, y), layer.bottom(), role="residual")
            norm = _linked(
                d,
                x,
                y - 108,
                "add & norm",
                "norm",
                f"{blocks}#residual-connection-and-layer-normalization",
                "blocks.html#keras_attn.blocks."
                + ("EncoderBlock" if encoder else "DecoderBlock"),
            )
            d.arrow(layer.top(), norm.bottom(), role="residual")
            d.arrow(
                (x, y + 8),
                (x + 122, y + 8),
                (x + 122, y - 108),
                norm.right(),
                role="residual",
                width=2.6,
            )
            last = i + 1 == len(parts)
            if not last:
                d.line(norm.top(), (x, y - 160), role="residual", width=2.6)
                y -= 160
        tops[name] = norm
    memory = d.box(left, 252, 150, 50, "memory\n(B, S, D)", "memory")
    d.arrow(tops["encoder"].top(), memory.bottom(), role="memory", width=2.6)
    y = tops["cross"]
    for bus, shift, role in ((258, -58, "key"), (268, -18, "value")):
        d.arrow(
            memory.right(0.3 if role == "value" else 0.7),
            (bus, 242 if role == "value" else 262),
            (bus, y - (12 if role == "key" else 0)),
            (right + shift, y - (12 if role == "key" else 0)),
            (right + shift, y - 25),
            role=role,
        )
    logits = _linked(
        d,
        right,
        140,
        "logits: h E^T",
        "layer",
        f"{blocks}#transformer",
        "models.html#keras_attn.models.Transformer",
    )
    d.arrow(tops["decoder"].top(), logits.bottom(), role="residual", width=2.6)
    soft = _linked(
        d,
        right,
        78,
        "softmax",
        "output",
        "../tutorials/decoding/index.html",
        "decoding.html#keras_attn.decoding.GreedySearch",
    )
    d.arrow(logits.top(), soft.bottom())
    d.arrow(soft.top(), (right, 40))
    d.text(right, 22, "next token (B, T, V)")
    d.frame(10, 344, 242, 302)
    d.frame(278, 184, 238, 462)
    d.text(32, 328, "6 ×", bold=True)
    d.text(298, 168, "6 ×", bold=True)
    return d


def attention_inputs():
    """Three kinds of attention in a Transformer.

    Encoder self-attention: queries, keys and values come from the source, and
    its table (S, S) is full. Causal self-attention of the decoder: all three
    come from the target, and its table (T, T) is a lower triangle.
    Cross-attention: queries come from the target, keys and values from the
    memory, and its table (T, S) is full.
    """
    d = Drawing(520, 470)
    columns = (
        ("encoder\nself-attention", np.ones((4, 4), bool), "(S, S)", "source"),
        ("decoder\nself-attention", np.tri(3, dtype=bool), "(T, T)", "target"),
        ("cross-\nattention", np.ones((3, 4), bool), "(T, S)", None),
    )
    for i, (name, allowed, shape, source) in enumerate(columns):
        x = 88 + 172 * i
        T, S = allowed.shape
        d.mask(x - 15 * S, 104 - 15 * T, 30, allowed)
        d.text(x, 24, shape, muted=True)
        layer = d.box(x, 226, 156, 60, name, "weight", bold=True)
        d.arrow(layer.top(), (x, 168), role="weight")
        if source:
            entry = d.box(
                x, 420, 140, 50, f"{source}\n({shape[1]}, D)", "token"
            )
            starts = [(x, entry.top()[1])] * 3
        else:
            target = d.box(x - 47, 420, 74, 50, "target\n(T, D)", "token")
            memory = d.box(x + 36, 420, 84, 50, "memory\n(S, D)", "memory")
            low = memory.top()[1]
            starts = [target.top(), (x + 10, low), (x + 47, low)]
        for start, shift, letter, role in zip(
            starts,
            (-47, 0 if source else 10, 47),
            "qkv",
            ("query", "key", "value"),
            strict=True,
        ):
            end = (x + shift, layer.bottom()[1])
            d.arrow(start, (x + shift, 350), end, role=role)
            d.text(x + shift + 13, 300, letter, bold=True)
    return d


def residual_stream():
    """Post-norm and pre-norm.

    Two columns of two sublayers f_1 and f_2, from bottom to top. Post-norm, on
    the left: each sublayer reads the stream, its output is added to the stream,
    and the normalization is on the stream. Pre-norm, on the right: the
    normalization is inside the branch, before the sublayer, so the stream
    passes from bottom to top unchanged but for the sums. One more normalization
    follows at its top.
    """
    d = Drawing(520, 560)
    for x, title in ((90, "post-norm"), (340, "pre-norm")):
        pre = title == "pre-norm"
        d.text(x + 45, 20, title, bold=True, size=18)
        entry = d.box(x, 536, 80, 36, "x", "residual")
        point = entry.top()
        for i in (1, 2):
            y = 490 - 215 * (i - 1)
            plus = d.circle(x, y - 125, 16, "+", "residual")
            d.arrow(point, plus.bottom(), role="residual", width=4)
            side = x + 100
            if pre:
                norm = d.box(side, y - 36, 74, 34, "LN", "norm")
                layer = d.box(side, y - 86, 74, 34, f"f_{i}", "weight")
                d.arrow((x, y), (side, y), norm.bottom())
                d.arrow(norm.top(), layer.bottom())
            else:
                layer = d.box(side, y - 62, 74, 40, f"f_{i}", "weight")
                d.arrow((x, y), (side, y), layer.bottom())
            d.arrow(layer.top(), (side, y - 125), plus.right())
            point = plus.top()
            if not pre:
                norm = d.box(x, y - 172, 74, 34, "LN", "norm")
                d.arrow(point, norm.bottom(), role="residual", width=4)
                point = norm.top()
        if pre:
            norm = d.box(x, 98, 74, 34, "LN", "norm")
            d.arrow(point, norm.bottom(), role="residual", width=4)
            point = norm.top()
        d.arrow(point, (x, 42), role="residual", width=4)
    return d


def feed_forward():
    """Feed-forward network.

    Three tokens, each a vector of D numbers. Every vector passes alone through
    the same two matrices: W_1 widens it to F numbers, with a ReLU, and W_2
    returns to D numbers. Tokens do not mix.
    """
    d = Drawing(520, 420)
    for t in range(3):
        x = 122 + 155 * t
        start = d.vector(x, 395, 4, "token", cell=18)
        first = d.box(x, 325, 120, 38, "W_1, ReLU", "layer")
        wide = d.vector(x, 245, 8, "layer", cell=17)
        second = d.box(x, 165, 120, 38, "W_2", "layer")
        end = d.vector(x, 95, 4, "token", cell=18)
        for low, high in itertools.pairwise((start, first, wide, second, end)):
            d.arrow(low.top(), high.bottom())
        d.text(x, 62, f"token {t}", muted=True, size=SMALL)
    for y, name in ((395, "D"), (245, "F"), (95, "D")):
        d.text(22, y, name, bold=True)
    d.text(285, 24, "the same W_1 and W_2 for each token", size=SMALL)
    return d


def _sublayer(d, x, y, name, role, *, self_attention=False, memory=None):
    """Draws a post-norm sublayer above (x, y); returns the y of its end."""
    layer = d.box(x, y - 66, 230, 42, name, role, bold=True)
    low = layer.bottom()[1]
    stream = {"role": "residual", "width": 3}
    arms = []
    if self_attention:
        arms = [("q", "query", -70), ("k", "key", 0), ("v", "value", 70)]
        d.line((x, y), (x, y - 18), **stream)
    elif memory:
        arms = [("q", "query", 70)]
        for letter, kind, shift, share in (
            ("k", "key", -84, 0.3),
            ("v", "value", -28, 0.7),
        ):
            start = memory.right(share)
            point = (x + shift, start[1])
            d.arrow(start, point, (x + shift, low), role=kind)
            d.text(x + shift + 12, low + 12, letter, bold=True)
    else:
        d.arrow((x, y), layer.bottom(), **stream)
    for letter, kind, shift in arms:
        bend = y if memory else y - 18
        start = [(x, bend)] if not shift else [(x, bend), (x + shift, bend)]
        d.arrow(*start, (x + shift, low), role=kind)
        d.text(x + shift + 12, low + 14, letter, bold=True)
    plus = d.circle(x, y - 122, 16, "+", "residual")
    d.arrow(layer.top(), plus.bottom(), role="residual")
    side = (x + 160, y)
    d.arrow((x, y), side, (x + 160, y - 122), plus.right(), **stream)
    norm = d.box(x, y - 170, 190, 36, "layer normalization", "norm")
    d.arrow(plus.top(), norm.bottom(), **stream)
    d.line(norm.top(), (x, y - 200), **stream)
    return y - 200


def _linked(d, x, y, text, role, page, api, height=36):
    d.box(x - 23, y, 142, height, text, role, href=page, round_=4)
    d.box(
        x + 71,
        y,
        46,
        height,
        "API",
        role,
        size=SMALL,
        href=f"../api/{api}",
        label=f"API: {api.rpartition('.')[2]}",
        round_=4,
    )
    return Box(x, y, 188, height)
