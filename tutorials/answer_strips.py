"""Draws where answers begin and end, as strips of heat over a passage."""

import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle


def plot_strips(questions, readings, threshold=0.0):
    """Draws p(start) and p(end) of questions about one passage.

    Two strips a question, the upper one of starts, the lower one of ends. The
    first column is "no answer"; a frame stands around the answer.

    Args:
        questions: list of Q `Question`, all about the same P words.
        readings: list of Q `Reading`.
        threshold: float, in nats. A score up to it means "no answer".

    Returns:
        `matplotlib.figure.Figure`.

    Raises:
        ValueError: questions about different passages.
    """
    passage = list(questions[0].passage)
    if any(list(question.passage) != passage for question in questions):
        raise ValueError("`questions` must be about one passage. Received: two")
    columns, gap = len(passage) + 1, 0.6
    figure = Figure(
        figsize=(0.36 * columns + 3.0, 0.68 * len(questions) + 1.1),
        layout="constrained",
    )
    axes = figure.subplots()
    ticks = []
    for number, one in enumerate(readings):
        top = number * (2 + gap)
        axes.imshow(
            np.stack([one.start, one.end]),
            extent=(-0.5, columns - 0.5, top + 2, top),
            aspect="auto",
            cmap="Blues",
            vmin=0,
            vmax=1,
        )
        first, last = one.span if one.score > threshold else (-1, -1)
        axes.add_patch(
            Rectangle(
                (first + 0.5, top),
                last - first + 1,
                2,
                fill=False,
                edgecolor="#c23b22",
                linewidth=2,
            )
        )
        ticks.append(top + 1)
    axes.set_ylim(ticks[-1] + 1 + gap / 2, -gap / 2)
    axes.set_xlim(-0.5, columns - 0.5)
    axes.axvline(0.5, color="gray", linewidth=0.8)
    axes.set_yticks(ticks, [" ".join(q.asked) + "?" for q in questions])
    labels = ["(no answer)", *passage]
    axes.set_xticks(range(columns), labels, rotation=60, ha="right")
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    return figure
