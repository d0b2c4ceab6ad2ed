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
