"""Diagrams of pre-training and fine-tuning."""

from tools.diagrams.drawing import SMALL, Drawing


def bert_inputs():
    """Input of BERT: a sum of three embeddings.

    Seven tokens: [CLS], my, dog, [SEP], it, barks, [SEP]. Each has a token
    embedding, a position embedding for its position from 0 to 6, and a segment
    embedding, 0 for the first part and 1 for the second. The three are added
    and normalized to the input of the first block.
    """
    d = Drawing(520, 424)
    words = ("[CLS]", "my", "dog", "[SEP]", "it", "barks", "[SEP]")
    for t, word in enumerate(words):
        x = 44 + 72 * t
        d.text(x, 380, word, size=SMALL)
        segment = int(t > 3)
        for y, text, role in (
            (330, f"E_{t}", "layer"),
            (258, f"P_{t}", "position"),
            (186, f"G_{segment}", "token"),
        ):
            d.box(x, y, 62, 38, text, role)
            if y > 190:
                d.text(x, y - 37, "+", bold=True)
        norm = d.box(x, 108, 62, 38, "LN", "norm")
        d.arrow((x, 167), norm.bottom(), role="residual")
        out = d.box(x, 34, 62, 38, f"h_{t}", "residual")
        d.arrow(norm.top(), out.bottom(), role="residual")
    d.text(
        260, 408, "E: token, P: position, G: segment", size=SMALL, muted=True
    )
    return d


def masked_tokens():
    """Masking for BERT.

    In the sentence the cat sat on the mat, the token sat is one of the 15
    percent that are chosen. It becomes [MASK] in 80 percent of the cases, a
    random token such as tree in 10 percent, and stays sat in 10 percent. In all
    three cases, the model must predict sat.
    """
    d = Drawing(520, 440)
    words = ("the", "cat", "sat", "on", "the", "mat")
    for i, word in enumerate(words):
        chosen = word == "sat"
        d.box(
            48 + 85 * i,
            414,
            76,
            38,
            word,
            "output" if chosen else "token",
            bold=chosen,
        )
    d.text(
        240,
        360,
        "15 % of the tokens are chosen",
        size=SMALL,
        anchor="start",
        muted=True,
    )
    join = d.box(260, 108, 460, 42, "BERT", "weight", bold=True)
    for x, word, share, role in (
        (95, "[MASK]", "80 %", "masked"),
        (260, "tree", "10 %", "token"),
        (425, "sat", "10 %", "output"),
    ):
        d.arrow((218, 395), (218, 330), (x, 330), (x, 272))
        d.text(x + 12, 304, share, bold=True, anchor="start")
        box = d.box(x, 250, 110, 42, word, role)
        d.arrow(box.top(), (x, join.bottom()[1]))
    out = d.box(260, 32, 130, 40, "predicts sat", "output")
    d.arrow(join.top(), out.bottom(), role="output")
    return d


def bert_tasks():
    """The two pre-training tasks of BERT.

    The input is [CLS], two sentences with [SEP] after each, and some tokens
    replaced by [MASK]. From the vectors of the masked tokens, one head predicts
    the tokens cat and sleeps. From the vector of [CLS], another head predicts
    whether the second sentence follows the first.
    """
    d = Drawing(520, 390)
    words = ("[CLS]", "the", "[MASK]", "[SEP]", "it", "[MASK]", "[SEP]")
    encoder = d.box(
        260, 238, 500, 46, "encoder blocks, no causal mask", "weight", bold=True
    )
    for t, word in enumerate(words):
        x = 44 + 72 * t
        token = d.box(
            x,
            334,
            68,
            38,
            word,
            "masked" if word == "[MASK]" else "token",
            size=SMALL,
        )
        d.arrow(token.top(), (x, encoder.bottom()[1]))
    for t, name, answer in (
        (0, "follows?", "yes / no"),
        (2, "token?", "cat"),
        (5, "token?", "sleeps"),
    ):
        x = 44 + 72 * t
        center = max(x, 50)
        head = d.box(center, 142, 92, 40, name, "layer")
        d.arrow((x, encoder.top()[1]), (x, head.bottom()[1]))
        out = d.box(center, 60, 92, 40, answer, "output")
        d.arrow((x, head.top()[1]), (x, out.bottom()[1]))
    d.text(8, 20, "next sentence", size=SMALL, anchor="start", muted=True)
    d.text(296, 20, "masked language model", size=SMALL, muted=True)
    d.text(134, 374, "first sentence", size=SMALL, muted=True)
    d.text(386, 374, "second sentence", size=SMALL, muted=True)
    return d


def fine_tuning_heads():
    """Four heads on one encoder.

    A sentence: the vector of [CLS] gives one class. A pair: [CLS] of two texts
    gives one class. A span: the vectors of all tokens of the text give scores
    for the start and the end of the answer. Tags: the vector of each token
    gives a tag, such as O, B and I.
    """
    d = Drawing(520, 600)
    panels = (
        ("sentence", ("[CLS]", "x_1", "x_2", "x_3"), {0: "class"}),
        ("pair", ("[CLS]", "a_1", "[SEP]", "b_1"), {0: "class"}),
        ("span", ("[CLS]", "x_1", "x_2", "x_3"), {1: "start", 3: "end"}),
        ("tags", ("[CLS]", "x_1", "x_2", "x_3"), {1: "O", 2: "B", 3: "I"}),
    )
    for i, (name, tokens, outputs) in enumerate(panels):
        left, top = 262 * (i % 2), 300 * (i // 2)
        d.text(left + 130, top + 20, name, bold=True)
        encoder = d.box(left + 130, top + 196, 240, 38, "encoder", "weight")
        for t, token in enumerate(tokens):
            x = left + 41 + 59 * t
            entry = d.box(x, top + 268, 55, 36, token, size=SMALL)
            d.arrow(entry.top(), (x, encoder.bottom()[1]))
            if t in outputs:
                head = d.box(x, top + 126, 50, 34, "W", "layer")
                d.arrow((x, encoder.top()[1]), head.bottom())
                out = d.box(
                    x, top + 62, 55, 36, outputs[t], "output", size=SMALL
                )
                d.arrow(head.top(), out.bottom())
    return d


def lora():
    """LoRA: a low-rank update of a frozen matrix.

    The input x has D features. On the left it passes the frozen matrix W, of
    shape (D, F). On the right it passes two trained matrices, A of shape (D, r)
    and A' of shape (r, F), with a rank r much smaller than D. Both results are
    added to the output y with F features. A' starts from zeros.
    """
    d = Drawing(500, 440)
    entry = d.box(250, 414, 110, 38, "x (D)", "token")
    frozen = d.box(130, 235, 190, 190, "W (D, F)\nfrozen", "masked")
    d.arrow(entry.left(), (130, 414), frozen.bottom())
    d.arrow(entry.right(), (380, 414), (380, 330))
    d.shape("M290 330L470 330L412 262L348 262Z", "layer")
    d.text(380, 298, "A (D, r)")
    d.shape("M348 208L412 208L470 140L290 140Z", "layer")
    d.text(380, 172, "A' (r, F)")
    d.arrow((380, 262), (380, 208))
    d.text(394, 235, "r numbers", anchor="start", muted=True, size=SMALL)
    plus = d.circle(250, 84, 17, "+", "token")
    d.arrow(frozen.top(), (130, 84), plus.left())
    d.arrow((380, 140), (380, 84), plus.right())
    out = d.box(250, 26, 110, 38, "y (F)", "token")
    d.arrow(plus.top(), out.bottom())
    return d


def next_token_labels():
    """Labels of a language model.

    The input is the text t, h, e, space, c, a, and the labels are the same text
    shifted by one: h, e, space, c, a, t. At each position, GPT predicts the
    next token from the tokens up to this position, so one row trains six
    predictions.
    """
    d = Drawing(520, 300)
    model = d.box(
        270, 150, 470, 46, "GPT, causal self-attention", "weight", bold=True
    )
    text = "the cat"
    for t in range(6):
        x = 75 + 78 * t
        entry = d.box(x, 236, 60, 38, text[t].replace(" ", "␣"))
        out = d.box(x, 64, 60, 38, text[t + 1].replace(" ", "␣"), "output")
        d.arrow(entry.top(), (x, model.bottom()[1]))
        d.arrow((x, model.top()[1]), out.bottom())
    d.text(270, 280, "input: tokens 0 to T − 1", muted=True, size=SMALL)
    d.text(270, 24, "labels: tokens 1 to T", muted=True, size=SMALL)
    return d
