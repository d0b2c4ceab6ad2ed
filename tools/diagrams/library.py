"""Diagrams of the library itself."""

from tools.diagrams.drawing import SMALL, Drawing


def training_step():
    """One training step.

    Source ids (B, S) pass the embedding and the encoder blocks to the memory
    (B, S, D). Target ids (B, T) pass the embedding and the decoder blocks,
    which read the memory, to logits (B, T, V). The loss compares them with the
    labels (B, T) without padding. The gradients of the loss flow back through
    all of them, and the optimizer changes the weights.
    """
    d = Drawing(520, 590)
    left, right = 130, 390
    for x, ids, name in (
        (left, "source ids (B, S)", "encoder blocks"),
        (right, "target ids (B, T)", "decoder blocks"),
    ):
        entry = d.box(x, 564, 190, 40, ids)
        embed = d.box(x, 484, 190, 52, "TokenEmbedding +\npositions", "layer")
        d.arrow(entry.top(), embed.bottom())
        block = d.box(x, 380, 190, 46, name, "weight", bold=True)
        d.arrow(embed.top(), block.bottom(), role="residual")
        letter = "S" if x == left else "T"
        d.text(
            x + 14,
            430,
            f"(B, {letter}, D)",
            muted=True,
            size=SMALL,
            anchor="start",
        )
    memory = d.box(left, 284, 190, 44, "memory (B, S, D)", "memory")
    d.arrow((left, 357), memory.bottom(), role="memory")
    d.arrow(memory.right(), (260, 284), (260, 380), (295, 380), role="memory")
    logits = d.box(right, 284, 190, 44, "logits (B, T, V)", "layer")
    d.arrow((right, 357), logits.bottom(), role="residual")
    loss = d.box(
        right, 182, 240, 48, "SequenceCrossentropy", "output", bold=True
    )
    d.arrow(logits.top(), loss.bottom())
    labels = d.box(left, 182, 190, 44, "labels (B, T)")
    d.arrow(labels.right(), loss.left())
    d.box(
        260, 44, 250, 56, "optimizer: gradients\nchange all weights", "output"
    )
    d.arrow(loss.top(), (right, 110), (260, 110), (260, 72), role="output")
    return d


def import_layers():
    """Import layers of the package.

    Seven rows from bottom to top; a package imports from rows below it only.
    Row 0: backend, checks, atomic_files. Row 1: ops. Row 2: cache. Row 3:
    layers, decoding and training. Row 4: blocks. Row 5: models. Row 6:
    pretrained, explain and testing. The packages text and datasets import row
    0 only.
    """
    d = Drawing(520, 500)
    rows = (
        ("backend", "checks", "atomic~files"),
        ("ops",),
        ("cache",),
        ("layers", "decoding", "training"),
        ("blocks",),
        ("models",),
        ("pretrained", "explain", "testing"),
    )
    width = 336
    for level, names in enumerate(rows):
        y = 440 - 66 * level
        d.text(20, y, str(level), muted=True)
        each = width / len(names)
        for i, name in enumerate(names):
            x = 44 + each * (i + 0.5)
            role = "masked" if level == 0 else "layer"
            d.box(x, y, each - 8, 42, name, role, size=SMALL)
        if level:
            d.arrow((44 + width / 2, y + 21), (44 + width / 2, y + 45))
    for i, name in enumerate(("text", "datasets")):
        y = 308 - 66 * i
        d.box(450, y, 104, 42, name, "layer", size=SMALL)
    d.arrow((450, 329), (450, 440), (380, 440))
    d.line((450, 263), (450, 287))
    d.text(212, 482, "gray: private", muted=True, size=SMALL)
    return d


def device_mesh():
    """A mesh of devices.

    Eight devices as two rows and four columns. Each row of devices gets half of
    the rows of a batch, each column two of the eight heads. The four devices of
    a row sum the outputs of a block; the two devices of a column sum the
    gradients.
    """
    d = Drawing(520, 350)
    width, height, left, top = 98, 74, 120, 72
    columns = [left + width * (m + 0.5) for m in range(4)]
    d.text(left + 2 * width, 20, "model axis", bold=True)
    for m, x in enumerate(columns):
        d.text(x, 50, f"heads {2 * m}, {2 * m + 1}", size=SMALL)
    d.text(8, 50, "batch axis", anchor="start", bold=True)
    for b in range(2):
        y = top + (height + 48) * b + height / 2
        d.text(8, y, f"rows {8 * b} to {8 * b + 7}", anchor="start", size=SMALL)
        for m, x in enumerate(columns):
            d.box(x, y, width - 10, height, f"device\n{4 * b + m}", "layer")
        under = y + height / 2 + 12
        d.line((columns[0], under), (columns[3], under), role="residual")
        d.text(
            left + 2 * width,
            under + 16,
            "each block: sum of outputs",
            size=SMALL,
        )
    bottom = top + 2 * height + 48 + 48
    d.text(
        left + 2 * width,
        bottom + 12,
        "each step: sum of gradients over a column",
        size=SMALL,
    )
    return d


def length_buckets():
    """Batches of similar lengths.

    Six rows with 2, 7, 3, 8, 2 and 6 tokens. One batch of all of them has the
    length of the longest row, so 20 of its 48 tokens are padding. In two
    buckets, the short rows are padded to three tokens and the long ones to
    eight: 5 of 33 tokens are padding.
    """
    d = Drawing(520, 260)
    cell = 26

    def batch(left, top, lengths):
        for r, length in enumerate(lengths):
            for i in range(max(lengths)):
                d.box(
                    left + cell * (i + 0.5),
                    top + cell * (r + 0.5),
                    cell - 4,
                    cell - 4,
                    "",
                    "token" if i < length else "masked",
                    round_=3,
                    dashed=i >= length,
                )

    d.text(20, 22, "one batch", anchor="start", bold=True)
    batch(20, 44, (2, 7, 3, 8, 2, 6))
    d.text(20, 226, "20 of 48 are padding", anchor="start", size=SMALL)
    d.text(290, 22, "two buckets", anchor="start", bold=True)
    batch(290, 44, (2, 3, 2))
    batch(290, 134, (7, 8, 6))
    d.text(290, 240, "5 of 33 are padding", anchor="start", size=SMALL)
    return d
