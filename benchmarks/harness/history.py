"""The history of ratios: one JSON object per line, appended by full runs."""

import json
import math
import pathlib
import statistics

from benchmarks.harness import table

NAME = "history.jsonl"
_PACKAGES = {"tensorflow", "jax", "torch"}


def entries(result):
    """Returns the entries of a run.

    Args:
        result: dict, from `report.complete`.

    Returns:
        List of dicts, one per contestant and case with a ratio: `date`,
        `table`, `case`, `contestant`, `backend`, `peer`, `ratio`, `machine`,
        and `versions` without those of other backends.
    """
    found = []
    for one in result["results"]:
        for entry in one["contestants"]:
            if "ratio" not in entry:
                continue
            others = _PACKAGES - {entry["backend"]}
            found.append(
                {
                    "date": result["date"],
                    "table": result["table"],
                    "case": one["case"]["name"],
                    "contestant": entry["name"],
                    "backend": entry["backend"],
                    "peer": entry["against"],
                    "ratio": round(entry["ratio"], 4),
                    "machine": table.machine(result["machine"]),
                    "versions": {
                        name: version
                        for name, version in result["versions"].items()
                        if version and name not in others
                    },
                }
            )
    return found


def append(path, new):
    """Appends entries to a history, which is created if necessary."""
    path = pathlib.Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a", encoding="utf-8") as file:
        file.writelines(json.dumps(entry) + "\n" for entry in new)


def read(path):
    """Reads a history, oldest entries first."""
    lines = pathlib.Path(path).read_text("utf-8").splitlines()
    return [json.loads(line) for line in lines]


def runs(history, name):
    """Splits the entries of a table into runs.

    A run ends where the date changes or a contestant appears again in the same
    case.

    Args:
        history: list, from `read`.
        name: str. The table.

    Returns:
        List of lists of entries.
    """
    found, seen = [], set()
    for entry in history:
        if entry["table"] != name:
            continue
        key = entry["case"], entry["contestant"]
        if not found or key in seen or entry["date"] != found[-1][-1]["date"]:
            found.append([])
            seen = set()
        seen.add(key)
        found[-1].append(entry)
    return found


def speedups(run):
    """Returns how many times as fast as others this library was.

    Args:
        run: list of entries of one table.

    Returns:
        Dict from (peer, backend, case) to a float. Peers that are compared with
        this library are turned around; entries that do not compare it with
        something else are left out.
    """
    found = {}
    for entry in run:
        names = entry["contestant"], entry["peer"]
        ours = [name.startswith("keras_attn") for name in names]
        if ours[0] == ours[1]:
            continue
        peer, ratio = names[ours.index(False)], entry["ratio"]
        key = peer, entry["backend"], entry["case"]
        # The row of this library wins if both are compared with each other.
        if ours[0] or key not in found:
            found[key] = ratio if ours[0] else 1 / ratio
    return found


def courses(history, name):
    """Returns how the speedups of a table developed.

    Args:
        history: list, from `read`.
        name: str. The table.

    Returns:
        Dict from (peer, backend) to a list of (date, mean, least, greatest),
        one per run that measured it: over all cases, the latest result of each;
        the mean is geometric.
    """
    found, latest = {}, {}
    for run in runs(history, name):
        new = speedups(run)
        latest |= new
        for pair in dict.fromkeys(key[:2] for key in new):
            values = [v for key, v in latest.items() if key[:2] == pair]
            found.setdefault(pair, []).append(
                (
                    run[0]["date"],
                    math.exp(statistics.fmean(map(math.log, values))),
                    min(values),
                    max(values),
                )
            )
    return found
