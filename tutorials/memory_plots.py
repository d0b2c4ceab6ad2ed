"""Pictures of a model that remembers segments."""

import numpy as np
from matplotlib.figure import Figure


def draw_by_place(arms):
    """Draws what characters cost, by their place in the segment.

    Args:
        arms: dict of name to float (T,), nats.

    Returns:
        A `matplotlib.figure.Figure`.
    """
    figure = Figure(figsize=(7, 3.4), layout="constrained")
    panel = figure.subplots()
    for name, losses in arms.items():
        dashed = "--" if name == "GPT" else "-"
        panel.plot(np.asarray(losses) / np.log(2), dashed, label=name)
    panel.set(
        xlabel="characters before it in its segment",
        ylabel="bits",
        ylim=(0, None),
    )
    panel.legend()
    return figure


def draw_shift(scores, shifted):
    """Draws scores by distance before and after the relative shift.

    Args:
        scores: int (T, R), a distance in each place.
        shifted: int (T, S), likewise; negative ones are of the future.

    Returns:
        A `matplotlib.figure.Figure`.
    """
    figure = Figure(figsize=(8, 2.2), layout="constrained")
    panels = figure.subplots(1, 2)
    titles = "one product for every distance", "each row moved one place on"
    for panel, table, title in zip(
        panels, (scores, shifted), titles, strict=True
    ):
        shown = np.where(table < 0, np.nan, table)
        panel.imshow(shown, cmap="viridis", vmin=0, vmax=scores.max())
        for (row, column), distance in np.ndenumerate(table):
            if distance >= 0:
                panel.text(
                    column,
                    row,
                    str(distance),
                    ha="center",
                    va="center",
                    color="black" if distance > scores.max() / 2 else "white",
                )
        panel.set(xticks=[], yticks=range(len(table)), title=title)
        panel.set_ylabel("query")
    panels[0].set_xlabel("distance")
    panels[1].set_xlabel("key, the remembered ones first")
    return figure


def draw_reach(arms, reaches):
    """Draws how much logits change with characters far back.

    Args:
        arms: dict of name to (distances, changes), both (characters,).
        reaches: dict of name to int, the distance behind which nothing may
            change.

    Returns:
        A `matplotlib.figure.Figure`.
    """
    figure = Figure(figsize=(7, 3.2), layout="constrained")
    panel = figure.subplots()
    for number, (name, (distances, changes)) in enumerate(arms.items()):
        seen = np.where(np.asarray(changes) > 0, changes, np.nan)
        panel.semilogy(
            distances, seen, ".-", color=f"C{number}", label=name, markersize=4
        )
        panel.axvline(reaches[name], color=f"C{number}", linestyle=":")
    panel.set(
        xlabel="distance of the character that is changed",
        ylabel="largest change of a logit",
    )
    panel.legend()
    return figure


def draw_distances(scores, titles):
    """Draws what attention makes of a distance, head by head.

    Args:
        scores: list of float (N, R), a layer each: score of distance r.
        titles: list of str, one a layer.

    Returns:
        A `matplotlib.figure.Figure`.
    """
    figure = Figure(figsize=(9.5, 2.8), layout="constrained")
    panels = figure.subplots(1, len(scores), sharey=True, squeeze=False)[0]
    for panel, layer, title in zip(panels, scores, titles, strict=True):
        for number, head in enumerate(layer):
            panel.plot(head, linewidth=1, label=f"head {number}")
        panel.axhline(0, color="0.7", linewidth=0.5)
        panel.set(xlabel="distance", title=title)
    panels[0].set_ylabel("score")
    panels[0].legend(fontsize=7)
    return figure


def draw_longer(curves, trained):
    """Draws the loss by the memory that is used in evaluation.

    Args:
        curves: dict of name to a dict of memory to loss, nats.
        trained: dict of name to the memory of the training.

    Returns:
        A `matplotlib.figure.Figure`.
    """
    figure = Figure(figsize=(7, 3.2), layout="constrained")
    panel = figure.subplots()
    for number, (name, curve) in enumerate(curves.items()):
        color = f"C{number + 1}"
        bits = {memory: loss / np.log(2) for memory, loss in curve.items()}
        panel.plot(range(len(bits)), bits.values(), ".-", color=color)
        memory = trained[name]
        if memory in bits:
            panel.plot(
                list(bits).index(memory),
                bits[memory],
                "o",
                color=color,
                label=f"trained with {memory}",
            )
        panel.set_xticks(range(len(bits)), bits)
    panel.set(xlabel="characters remembered", ylabel="bits a character")
    panel.legend()
    return figure
