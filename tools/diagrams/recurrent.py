"""Diagrams of recurrent models and of paths between tokens."""

from tools.diagrams.drawing import SMALL, Drawing
from tools.diagrams.numbers import softmax


def seq2seq():
    """Sequence-to-sequence without attention.

    A recurrent encoder reads the words this, cat and sleeps, one state after
    the other. Only its last state leads to the decoder, as one vector of D
    numbers, whatever the length of the source. The decoder starts from it,
    reads the start token, este and gato, and predicts este, gato and duerme.
    """
    d = Drawing(520, 450)
    d.text(14, 18, "encoder", anchor="start", muted=True, size=SMALL)
    states = _chain(d, 60, "h", ("this", "cat", "sleeps"), 3)
    neck = d.box(
        440, 60, 130, 76, "one vector:\nD numbers\nfor any S", "memory"
    )
    d.arrow(states[-1].right(), neck.left(), width=2.4, role="memory")
    d.text(40, 220, "decoder", anchor="start", muted=True, size=SMALL)
    names = ("[start]", "este", "gato")
    decoder = _chain(d, 338, "q", names, 3, ("este", "gato", "duerme"))
    d.arrow(
        neck.bottom(),
        (440, 200),
        (24, 200),
        (24, 338),
        decoder[0].left(),
        role="memory",
        width=2.4,
    )
    return d


def seq2seq_attention():
    """One step of a decoder with attention.

    The state of the decoder is the query. It gets a score with each of the
    three encoder states, and a softmax turns the scores 1, 3 and 0 into the
    weights 0.11, 0.84 and 0.04. The context vector is the sum of the states,
    times their weights. From context and query, the decoder predicts gato.
    """
    d = Drawing(520, 580)
    scores = (1, 3, 0)
    weights = softmax(scores)
    words = ("this", "cat", "sleeps")
    total = d.circle(185, 182, 18, "+", "value")
    context = d.box(185, 110, 130, 38, "context c_t", "value")
    d.arrow(total.top(), context.bottom(), role="value")
    query = d.box(447, 430, 130, 62, "query q_t:\ndecoder state", "query")
    token = d.box(447, 550, 90, 34, "este")
    d.arrow(token.top(), query.bottom())
    d.line(query.left(), (90, 430), role="query")
    soft = d.box(185, 315, 330, 36, "softmax", "weight")
    for s, word in enumerate(words):
        x = 65 + 120 * s
        entry = d.box(x, 550, 90, 34, word)
        state = d.box(x, 480, 90, 36, f"h_{s}", "key")
        d.arrow(entry.top(), state.bottom())
        score = d.box(x, 385, 90, 36, f"score {scores[s]}", "weight")
        d.arrow(state.top(), score.bottom(), role="key")
        d.arrow((x + 25, 430), score.bottom(0.5 + 25 / 90), role="query")
        d.arrow(score.top(), (x, soft.bottom()[1]), role="weight")
        weight = d.box(x, 250, 90, 36, f"{weights[s]:.2f}", shade=weights[s])
        d.arrow((x, soft.top()[1]), weight.bottom(), role="weight")
        d.arrow(weight.top(), total.bottom(0.2 + 0.3 * s), role="value")
        if s:
            d.arrow((x - 75, 480), state.left())
    d.text(270, 200, "Σ w_{ts} h_s", size=SMALL, muted=True, anchor="start")
    mix = d.box(320, 32, 150, 44, "gato", "output")
    d.arrow(context.top(), (185, 32), mix.left(), role="value")
    d.arrow(query.top(), (447, 32), mix.right(), role="query")
    return d


def teacher_forcing():
    """Teacher forcing and generation.

    The correct tokens are 7, 3 and 9. In training, the decoder reads the
    correct tokens, whatever it predicted: after the wrong prediction 5 it still
    reads 3. In generation, it reads its own predictions: after the wrong 5 it
    reads 5, in a state that never occurred in training, and the next prediction
    is wrong, too.
    """
    d = Drawing(520, 520)
    cases = (
        ("training: reads the correct tokens", "7 5 9", "[start] 7 3"),
        ("generation: reads its own tokens", "7 5 4", "[start] 7 5"),
    )
    for row, (title, predicted, read) in enumerate(cases):
        top = 262 * row
        d.text(14, top + 20, title, anchor="start", bold=True)
        before = None
        columns = zip(predicted.split(), read.split(), "739", strict=True)
        for i, (token, entered, correct) in enumerate(columns):
            x = 80 + 160 * i
            wrong = token != correct
            entry = d.box(x, top + 215, 84, 34, entered)
            state = d.box(x, top + 145, 84, 38, f"q_{i}", "layer")
            name = f"{token} wrong" if wrong else token
            result = d.box(
                x, top + 75, 84, 34, name, "output", bold=wrong, dashed=wrong
            )
            d.arrow(entry.top(), state.bottom())
            d.arrow(state.top(), result.bottom())
            if before:
                d.arrow(before[0].right(), state.left())
            if before and row:
                middle = x - 64
                d.arrow(
                    before[1].right(),
                    (middle, top + 75),
                    (middle, top + 215),
                    entry.left(),
                    role="output",
                    dashed=True,
                )
            before = state, result
    return d


def path_lengths():
    """Path lengths of three kinds of layers.

    Eight tokens, and the path from the first token to the last output. In a
    recurrent layer, it has 8 steps: one up and seven to the right. With
    convolutions whose gaps are 1, 2 and 4, it has 3 steps, one for each layer.
    In self-attention it has a single step.
    """
    d = Drawing(520, 660)
    xs = [40 + 63 * t for t in range(8)]
    thick, thin = {"width": 3.4}, {"width": 1.2, "role": "masked"}

    def row(y, role="token"):
        return [d.circle(x, y, 13, "", role) for x in xs]

    d.text(14, 20, "recurrent: 8 steps", anchor="start", bold=True)
    low, high = row(130), row(65, "layer")
    for t in range(8):
        chosen = thick if t == 0 else thin
        d.arrow(low[t].top(), high[t].bottom(), **chosen)
        if t:
            d.arrow(high[t - 1].right(), high[t].left(), **thick)
    d.text(14, 182, "convolutional: 3 steps", anchor="start", bold=True)
    rows = [row(445 - 75 * i, "layer" if i else "token") for i in range(4)]
    path = {(0, 0), (1, 1), (2, 3), (3, 7)}
    for layer in (0, 1, 2):
        gap = 2**layer
        for t in range(8):
            for s in (t, t - gap):
                if s >= 0:
                    on = (layer, s) in path and (layer + 1, t) in path
                    kwargs = thick if on else thin
                    d.arrow(
                        rows[layer][s].top(),
                        rows[layer + 1][t].bottom(),
                        **kwargs,
                    )
    d.text(14, 500, "self-attention: 1 step", anchor="start", bold=True)
    low, high = row(632), row(545, "weight")
    for s in range(7, -1, -1):
        chosen = thick if s == 0 else thin
        d.arrow(low[s].top(), high[7].bottom(), **chosen)
    return d


def _chain(d, y, letter, words, number, outputs=None):
    boxes = []
    for i in range(number):
        x = 75 + 120 * i
        state = d.box(x, y, 80, 40, f"{letter}_{i}", "layer")
        entry = d.box(x, y + 76, 80, 34, words[i])
        d.arrow(entry.top(), state.bottom())
        if boxes:
            d.arrow(boxes[-1].right(), state.left())
        if outputs:
            result = d.box(x, y - 76, 80, 34, outputs[i], "output")
            d.arrow(state.top(), result.bottom())
        boxes.append(state)
    return boxes
