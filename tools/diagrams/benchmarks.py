"""Diagrams of the benchmarks, drawn from their history."""

import datetime
import math

from benchmarks.harness import history
from tools.diagrams import ROOT
from tools.diagrams.drawing import SMALL, Drawing

HISTORY = ROOT / "docs" / "benchmarks" / history.NAME
_TABLES = {
    "training_step": "Training step, CPU",
    "attention": "Attention, next to Keras's, CPU",
    "decoding": "Decoding, CPU",
    "training_step_gpu": "Training step, GPU",
    "attention_gpu": "Attention, next to Keras's, GPU",
    "decoding_gpu": "Decoding, GPU",
}
_SHORT = {
    "keras.ops.dot_product_attention": "op",
    "keras.layers.MultiHeadAttention": "layer",
    "transformers (Marian)": "transformers",
}
_LEFT, _RIGHT, _ROW, _HEADING = 214, 450, 24, 34
_LOW, _HIGH = 0.25, 8


def speed_next_to_peers():
    """Speed next to peers.

    A bar for each peer and backend. It shows how many times as fast as the
    peer this library was in the latest full run: to the right of the line it
    is faster, to the left slower. The length is the geometric mean over the
    cases of the table, and the thin line spans the slowest and the fastest
    case; it has an arrow where it leaves the chart. The number is the mean.
    """
    rows = sum(len(found) for _, found in _tables())
    d = Drawing(520, 30 + _ROW * rows + _HEADING * len(_TABLES))
    for tick in (0.25, 0.5, 1, 2, 4, 8):
        d.text(_across(tick), 14, f"{tick:g}", size=SMALL, muted=True)
    _titled(d)
    y = 24
    for heading, found in _tables():
        y = _headed(d, y, heading)
        bottom = y + _ROW * len(found)
        for tick in (0.25, 0.5, 2, 4, 8):
            x = _across(tick)
            d.line((x, y), (x, bottom), role="masked", dashed=True, width=0.6)
        for label, course in found:
            _, mean, least, most = course[-1]
            _bar(d, y + _ROW / 2, label, mean, least, most)
            y += _ROW
        d.line(
            (_across(1), bottom - _ROW * len(found)),
            (_across(1), bottom),
            width=1.2,
        )
    return d


def speed_over_time():
    """Speed next to peers over time.

    A line for each peer and backend, with a dot per full run, from the oldest
    on the left to the latest on the right. Its height is the geometric mean of
    how many times as fast as the peer this library was, on a scale
    per row: its height is a change by a quarter, or the whole range. The number
    is that of the latest run.
    """
    tables = list(_tables())
    rows = sum(len(found) for _, found in tables)
    step = 30
    d = Drawing(520, 34 + step * rows + _HEADING * len(tables))
    days = [
        _day(date)
        for _, found in tables
        for _, course in found
        for date, *_ in course
    ]
    first, last = min(days), max(days) + 1
    for day, x, anchor in (
        (first, _LEFT, "start"),
        (last - 1, _RIGHT, "end"),
    ):
        date = datetime.date.fromordinal(day).isoformat()
        d.text(x, 14, date, size=SMALL, anchor=anchor, muted=True)
    _titled(d)
    y = 26
    for heading, found in tables:
        y = _headed(d, y, heading)
        for label, course in found:
            d.text(204, y + step / 2, label, anchor="end", size=SMALL)
            points = [
                (
                    _LEFT + (_RIGHT - _LEFT) * (day - first) / (last - first),
                    y + step / 2 - (step - 8) * height,
                )
                for day, height in zip(
                    _moments(course), _heights(course), strict=True
                )
            ]
            d.line(
                (_LEFT, y + step), (_RIGHT, y + step), role="masked", width=0.6
            )
            if len(points) > 1:
                d.line(*points, role="weight")
            for x, height in points:
                d.circle(x, height, 2.5, "", "weight")
            _value(d, y + step / 2, course[-1][1])
            y += step
    return d


def _tables():
    """Yields the heading and the rows of each table, a label and a course."""
    read = history.read(HISTORY)
    for name, heading in _TABLES.items():
        rows = [
            (_label(peer, backend), course)
            for (peer, backend), course in history.courses(read, name).items()
            # Modes of a peer that are slower than its row.
            if "without" not in peer and "tutorial" not in peer
        ]
        yield heading, sorted(rows, key=lambda row: -row[1][-1][1])


def _label(peer, backend):
    name = peer.removesuffix(f" on {backend}")
    short = _SHORT.get(name, name)
    return short if name == peer else f"{short}, {backend}"


def _across(ratio):
    share = math.log(ratio / _LOW) / math.log(_HIGH / _LOW)
    return _LEFT + (_RIGHT - _LEFT) * min(1, max(0, share))


def _titled(d):
    d.text(8, 14, "times as fast as", anchor="start", size=SMALL, muted=True)


def _headed(d, y, heading):
    d.text(8, y + _HEADING / 2 + 4, heading, anchor="start", bold=True)
    return y + _HEADING


def _bar(d, y, label, mean, least, most):
    d.text(204, y, label, anchor="end", size=SMALL)
    one, end = _across(1), _across(mean)
    d.box(
        (one + end) / 2,
        y,
        max(1, abs(end - one)),
        14,
        "",
        "weight" if mean >= 1 else "token",
        round_=2,
    )
    middle = _across(math.sqrt(least * most))
    for value in (least, most):
        d.arrow(
            (middle, y),
            (_across(value), y),
            head=not _LOW <= value <= _HIGH,
            width=1.2,
        )
    _value(d, y, mean)


def _value(d, y, ratio):
    d.text(512, y, f"{ratio:.2f}", anchor="end", size=SMALL)


def _day(date):
    return datetime.date.fromisoformat(date).toordinal()


def _moments(course):
    """Returns days with fractions, which spread the runs of a day."""
    dates = [date for date, *_ in course]
    seen = {date: 0 for date in dates}
    moments = []
    for date in dates:
        moments.append(_day(date) + (seen[date] + 0.5) / dates.count(date))
        seen[date] += 1
    return moments


def _heights(course):
    """Returns heights from -0.5 to 0.5, which are logarithms of the means."""
    logs = [math.log(mean) for _, mean, *_ in course]
    middle = (min(logs) + max(logs)) / 2
    span = max(math.log(1.25), max(logs) - min(logs))
    return [(log - middle) / span for log in logs]
