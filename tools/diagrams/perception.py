"""Diagrams of models that see and hear, and of explanations."""

import numpy as np

from tools.diagrams.drawing import SMALL, Drawing


def show_attend_tell():
    """Show, attend and tell.

    An image with a circle and a square becomes a grid of vectors by
    convolutions. The state of the decoder, after the word red, is the query. It
    gives each cell of the grid a weight, most to those with the circle. The
    weighted sum of the grid vectors and the state predict the next word,
    circle.
    """
    d = Drawing(520, 430)
    d.text(85, 20, "image", muted=True, size=SMALL)
    d.box(85, 105, 136, 136, "", "token", round_=0)
    d.circle(57, 80, 20, "", "output")
    d.box(116, 132, 36, 36, "", "query", round_=0)
    conv = d.box(85, 232, 136, 40, "convolutions", "layer")
    d.arrow((85, 173), conv.top())
    grid = 4
    cell = 34
    t, s = np.indices((grid, grid))
    scores = np.exp(-1.2 * ((t - 0.8) ** 2 + (s - 0.7) ** 2))
    weights = scores / scores.sum()
    d.arrow(conv.bottom(), (85, 285))
    d.mask(
        17,
        287,
        cell,
        np.ones((grid, grid), bool),
        shades=weights / weights.max(),
    )
    d.text(163, 300, "grid a_s", anchor="start", muted=True, size=SMALL)
    d.text(163, 412, "weights w_{ts}", anchor="start", muted=True, size=SMALL)
    context = d.box(
        250, 356, 130, 42, "c_t = Σ w_{ts} a_s", "value", size=SMALL
    )
    d.arrow((153, 356), context.left(), role="value")
    state = d.box(410, 232, 150, 46, "LSTM state q_t", "query")
    word = d.box(410, 356, 100, 38, "red")
    d.arrow(word.top(), state.bottom())
    d.line(state.left(), (205, 232), role="query")
    d.arrow((205, 232), (205, 262), (120, 262), (120, 285), role="query")
    out = d.box(410, 60, 130, 42, "circle", "output")
    mix = d.box(410, 145, 150, 40, "tanh, linear", "layer")
    d.arrow(state.top(), mix.bottom(), role="query")
    d.arrow(context.top(), (250, 145), mix.left(), role="value")
    d.arrow(mix.top(), out.bottom())
    return d


def glimpses():
    """Recurrent glimpses.

    A canvas with a digit. A glimpse at the location l_t has three square
    patches around it, of growing size and falling resolution. Its vector g_t is
    the input of a GRU. Its state h_t predicts the class, and the location
    l_{t+1} of the next glimpse.
    """
    d = Drawing(520, 430)
    d.text(120, 20, "canvas", muted=True, size=SMALL)
    d.box(120, 140, 208, 208, "", "token", round_=0)
    d.text(172, 178, "7", size=34, bold=True)
    d.text(28, 56, "3", size=22)
    for half in (20, 40, 80):
        x, y = 118, 150
        for a, b in (
            ((x - half, y - half), (x + half, y - half)),
            ((x + half, y - half), (x + half, y + half)),
            ((x + half, y + half), (x - half, y + half)),
            ((x - half, y + half), (x - half, y - half)),
        ):
            d.line(a, b, role="query", width=2)
    d.text(118, 151, "l_t", size=SMALL)
    glimpse = d.box(120, 320, 170, 46, "glimpse vector g_t", "value")
    d.arrow((120, 246), glimpse.top(), role="value")
    state = d.box(360, 320, 150, 46, "GRU state h_t", "layer")
    d.arrow(glimpse.right(), state.left(), role="value")
    d.arrow(
        state.right(),
        (500, 320),
        (500, 396),
        (360, 396),
        state.bottom(),
        dashed=True,
    )
    d.text(430, 416, "next step", muted=True, size=SMALL)
    d.box(440, 215, 110, 42, "class", "output")
    d.arrow(state.top(0.8), (405, 236), role="output")
    place = d.box(300, 215, 110, 42, "l_{t+1}", "query")
    d.arrow(state.top(0.2), (315, 236), role="query")
    d.arrow(place.top(), (300, 150), (226, 150), role="query", dashed=True)
    return d


def saliency_by_masks():
    """RISE: saliency from random masks.

    Four random masks show or hide five words; the model returns a score for
    each masked sentence: 0.9, 0.3, 0.8 and 0.2. The saliency of a word is the
    mean score of the masks that show it. The word tired, shown in the first and
    the third mask only, has the highest, 0.85.
    """
    d = Drawing(520, 430)
    words = ("it", "was", "too", "tired", "to")
    masks = np.array(
        [[1, 0, 1, 1, 0], [1, 1, 0, 0, 1], [0, 1, 0, 1, 1], [1, 0, 1, 0, 1]],
        bool,
    )
    scores = np.array([0.9, 0.3, 0.8, 0.2])
    for i, row in enumerate(masks):
        y = 62 + 66 * i
        for j, shown in enumerate(row):
            d.box(
                46 + 68 * j,
                y,
                64,
                40,
                words[j] if shown else "",
                "token" if shown else "masked",
            )
        d.arrow((354, y), (392, y))
        d.box(456, y, 92, 40, f"{scores[i]:.1f}", "output")
    d.text(182, 22, "random masks", muted=True, size=SMALL)
    d.text(456, 22, "model", muted=True, size=SMALL)
    saliency = (masks * scores[:, None]).sum(0) / masks.sum(0)
    d.arrow((182, 290), (182, 326), role="weight")
    for j, value in enumerate(saliency):
        x = 46 + 68 * j
        d.box(x, 352, 68, 44, f"{value:.2f}", shade=value, round_=0)
        d.text(x, 392, words[j])
    d.text(400, 345, "mean score of", anchor="start", size=SMALL)
    d.text(400, 367, "masks that", anchor="start", size=SMALL)
    d.text(400, 389, "show it", anchor="start", size=SMALL)
    return d


def speech_model():
    """Speech recognition.

    Frames of shape (F, 40) pass two convolutions with a stride of 2, which
    leave F / 4 vectors, and the encoder, which makes the memory m (S, D). A CTC
    head predicts a character or the blank for each vector. The decoder attends
    to the memory and predicts each character from those before it. The loss is
    the sum of both.
    """
    d = Drawing(520, 590)
    x = 160
    frames = d.box(x, 564, 220, 40, "log-mel frames (F, 40)")
    first = d.box(x, 490, 220, 42, "convolution, stride 2", "layer")
    second = d.box(x, 416, 220, 42, "convolution, stride 2", "layer")
    encoder = d.box(x, 330, 220, 46, "encoder blocks", "weight", bold=True)
    memory = d.box(x, 246, 150, 42, "memory m (S, D)", "memory")
    for low, high in (
        (frames, first),
        (first, second),
        (second, encoder),
        (encoder, memory),
    ):
        d.arrow(low.top(), high.bottom())
    d.text(172, 452, "F / 2", muted=True, size=SMALL, anchor="start")
    d.text(172, 374, "S = F / 4", muted=True, size=SMALL, anchor="start")
    ctc = d.box(
        105, 150, 170, 56, "CTC head: a token\nfor each vector", "layer"
    )
    decoder = d.box(420, 246, 150, 46, "decoder", "weight", bold=True)
    d.arrow((105, 225), ctc.bottom(), role="memory")
    d.arrow(memory.right(), decoder.left(), role="memory")
    read = d.box(420, 340, 150, 40, "[start] s o", "token")
    d.arrow(read.top(), decoder.bottom())
    out = d.box(420, 150, 150, 40, "s o s", "output")
    d.arrow(decoder.top(), out.bottom())
    d.box(260, 44, 280, 48, "loss: decoder + 0.3 CTC", "output", bold=True)
    d.arrow(ctc.top(), (105, 100), (180, 100), (180, 68), role="output")
    d.arrow(out.top(), (420, 100), (340, 100), (340, 68), role="output")
    return d


def ctc_paths():
    """How CTC reads a path.

    Eight vectors predict s, s, blank, o, o, blank, s and blank. Repeated
    characters are merged, then blanks are removed, which leaves s, o, s. A
    blank between two equal characters keeps both: l, blank, l is read as two
    characters, l, l as one.
    """
    d = Drawing(520, 340)
    path = "ss–oo–s–"
    merged = [(a, i) for i, a in enumerate(path) if i == 0 or path[i - 1] != a]
    kept = [(a, i) for a, i in merged if a != "–"]
    rows = (
        (
            "path: one token for each vector",
            [(a, i) for i, a in enumerate(path)],
            62,
        ),
        ("repeated tokens merged", merged, 172),
        ("blanks removed", kept, 282),
    )
    before = None
    for name, tokens, y in rows:
        d.text(17, y - 36, name, anchor="start", muted=True, size=SMALL)
        for a, i in tokens:
            x = 44 + 62 * i
            d.box(
                x, y, 54, 38, a, "masked" if a == "–" else "output", bold=True
            )
            if before:
                d.arrow((x, y - 91), (x, y - 54))
        before = tokens
    return d
