"""Figures of a report: speed and memory relative to the peers."""

import hashlib
import io
import json

from matplotlib.figure import Figure

from benchmarks.harness.table import tables

_LEAST_MIB = 100
_MARKS = "os^Dvp"
_OURS, _PEER = "#4051b5", "#b0b4c8"


def draw(result):
    """Draws a report.

    Cases that are columns of one table share a panel: each contestant is
    marked at its ratio to its peer, in time and in memory, and is better than
    the peer to the right of the line. Other cases have one panel of bars each,
    in tokens per second.

    Args:
        result: dict, from `report.complete` or `report.read`.

    Returns:
        A `matplotlib.figure.Figure`.
    """
    found = list(tables(result["results"]))
    if all("column" in entries[0]["case"] for _, entries in found):
        return _ratios(found)
    return _bars(found)


def fingerprint(result):
    """Returns a digest of the results of a report, str."""
    text = json.dumps(result["results"], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def png(result):
    """Returns the figure as PNG bytes, with the digest of its results."""
    target = io.BytesIO()
    metadata = {"Software": None, "Description": fingerprint(result)}
    draw(result).savefig(target, dpi=110, format="png", metadata=metadata)
    return target.getvalue()


def times_as_small(entry, contestants):
    """Returns the peer's memory divided by that of an entry, or None.

    It is None without a peer or a measurement, and where the peer takes so
    little memory that the measurement is noise.
    """
    peers = [one for one in contestants if one["name"] == entry.get("against")]
    if any(one["peak_mib"] is None for one in (entry, *peers)):
        return None
    taken = [one["peak_mib"] - one["base_mib"] for one in (entry, *peers)]
    if len(taken) < 2 or taken[1] < _LEAST_MIB or taken[0] <= 0:
        return None
    return taken[1] / taken[0]


def _ratios(found):
    names = list(
        dict.fromkeys(
            entry["name"]
            for _, entries in found
            for one in entries
            for entry in one["contestants"]
            if "ratio" in entry
        )
    )
    rows_of = {name: -number for number, name in enumerate(names)}
    figure = Figure(
        figsize=(10, len(found) * (1 + 0.25 * len(names))), layout="constrained"
    )
    panels = figure.subplots(len(found), 2, sharey=True, squeeze=False)
    for row, (title, entries) in zip(panels, found, strict=True):
        for panel in row:
            panel.axvline(1, color="black", linewidth=0.8)
            panel.set_xscale("log")
            panel.grid(axis="x", which="both", alpha=0.25)
        for number, (mark, one) in enumerate(
            zip(_MARKS, entries, strict=False)
        ):
            fast, small = [], []
            for entry in one["contestants"]:
                if "ratio" not in entry:
                    continue
                fast.append((entry["ratio"], rows_of[entry["name"]]))
                times = times_as_small(entry, one["contestants"])
                if times is not None:
                    small.append((times, rows_of[entry["name"]]))
            for panel, points in zip(row, (fast, small), strict=True):
                if points:
                    panel.plot(
                        *zip(*points, strict=True),
                        mark,
                        color=f"C{number}",
                        alpha=0.7,
                        label=one["case"]["column"],
                    )
        row[0].set_yticks(list(rows_of.values()), names, fontsize=8)
        row[0].set_title(title, fontsize=9)
        row[0].legend(fontsize=7)
        row[1].set_title(
            f"where the peer takes {_LEAST_MIB} MiB or more", fontsize=9
        )
        for panel in row:
            _plain(panel)
    panels[-1, 0].set_xlabel("times as fast as its peer")
    panels[-1, 1].set_xlabel("times as little memory as its peer")
    return figure


def _plain(panel):
    """Labels ticks as 2 and 50 instead of powers of ten."""
    low, high = panel.get_xlim()
    low, high = min(low, 0.45), max(high, 2.2)
    panel.set_xlim(low, high)
    ticks = [
        figure * 10**power
        for power in range(-2, 4)
        for figure in (1, 2, 5)
        if low <= figure * 10**power <= high
    ]
    panel.set_xticks(ticks, [f"{tick:g}" for tick in ticks], fontsize=8)
    panel.set_xticks([], minor=True)


def _bars(found):
    heights = [sum(len(o["contestants"]) for o in e) for _, e in found]
    figure = Figure(
        figsize=(10, sum(0.8 + 0.24 * height for height in heights)),
        layout="constrained",
    )
    panels = figure.subplots(
        len(found), squeeze=False, height_ratios=[2 + h for h in heights]
    )
    for panel, (title, entries) in zip(panels[:, 0], found, strict=True):
        contestants = [e for one in entries for e in one["contestants"]]
        rates = [entry["tokens_per_second"] for entry in contestants]
        ours = [entry["name"].startswith("keras_attn") for entry in contestants]
        panel.barh(
            range(len(rates)),
            rates,
            color=[_OURS if own else _PEER for own in ours],
        )
        for index, entry in enumerate(contestants):
            label = f" {entry['tokens_per_second']:,.0f}"
            if "ratio" in entry:
                label += f" ({entry['ratio']:.2f} x {entry['against']})"
            panel.text(rates[index], index, label, va="center", fontsize=7)
        panel.set_yticks(
            range(len(rates)), [e["name"] for e in contestants], fontsize=8
        )
        panel.invert_yaxis()
        panel.set_xlim(0, 1.5 * max(rates))
        panel.set_title(title, fontsize=9)
        panel.spines[["top", "right"]].set_visible(False)
    panels[-1, 0].set_xlabel("tokens in a second; dark: keras_attn")
    return figure
