"""Reports of measured times: medians, ratios and the machine."""

import datetime
import importlib.metadata
import json
import os
import pathlib
import platform
import statistics
import subprocess
import sys

from benchmarks.harness import picture, table
from benchmarks.harness.device import gpu
from tools.tutorials.facts import cores, cpu

ROOT = pathlib.Path(__file__).parents[2]
_PACKAGES = ("keras", "keras-hub", "tensorflow", "jax", "torch")
_SETTINGS = ("MALLOC_", "OMP_", "TF_ENABLE_", "TF_NUM_", "XLA_FLAGS")


def complete(results, plan, name, quick):
    """Adds statistics and the conditions of the run to measurements.

    Args:
        results: list, from `race.run`.
        plan: module with `TITLE`, `NOTES`, `CONTESTANTS`, `flops(case)` and
            `tokens(case)`; optionally `PACKAGES`, more packages whose versions
            are reported, `DEVICE`, "gpu" if its cases run there, and
            `PEAKS`, see `_peaks`.
        name: str. The table.
        quick: bool.

    Returns:
        Dict of plain data, to be written as JSON.
    """
    backends = sorted(
        {entry["backend"] for case in results for entry in case["contestants"]}
    )
    conditions = here(plan, backends, quick)
    peaks = {} if quick else _peaks(plan, backends)
    on_gpu = getattr(plan, "DEVICE", "") == "gpu"
    against = {one.name: one.against for one in plan.CONTESTANTS}
    for result in results:
        flops = plan.flops(result["case"])
        for entry in result["contestants"]:
            seconds = statistics.median(entry["seconds"])
            entry["median_seconds"] = seconds
            entry["tokens_per_second"] = plan.tokens(result["case"]) / seconds
            if peaks:
                peak = peaks[_peak_name(entry["backend"], result["case"])]
                entry["share_of_peak"] = flops / seconds / 1e9 / peak
            if on_gpu:
                entry["tflops"] = flops / seconds / 1e12
            entry["against"] = against[entry["name"]]
    compare(results)
    return {
        "table": name,
        "title": plan.TITLE,
        # The notes describe the sizes of a full run.
        "notes": [] if quick else _notes(plan.NOTES, results),
        # `make` also sets environment variables, such as those of malloc.
        "command": f"make benchmarks TABLE={name}"
        if "MAKELEVEL" in os.environ
        else f"python -m benchmarks {name}",
        "date": datetime.date.today().isoformat(),
        **conditions,
        "machine": {**conditions["machine"], "matrix_gflops": peaks},
        "results": results,
    }


def _notes(notes, results):
    """Fills in the number of rounds, which `--rounds` may have set."""
    rounds = {len(e["seconds"]) for o in results for e in o["contestants"]}
    shown = " to ".join(str(n) for n in sorted({min(rounds), max(rounds)}))
    return [note.replace("ROUNDS", shown) for note in notes]


def compare(results):
    """Compares each contestant with the one that it is `against`.

    The ratio is the median over the rounds of the peer's time divided by the
    contestant's. Both times of a round are measured right after each other, so
    a machine that slows down for a while does not change the ratio.

    Args:
        results: list, from `race.run` or `read`. Entries whose peer was
            measured gain a `ratio`.
    """
    for result in results:
        times = {
            entry["name"]: entry["seconds"] for entry in result["contestants"]
        }
        for entry in result["contestants"]:
            peer = times.get(entry.get("against"))
            if peer is not None:
                entry["ratio"] = statistics.median(
                    theirs / own
                    for theirs, own in zip(peer, entry["seconds"], strict=True)
                )


def here(plan, backends, quick):
    """Returns the conditions of a run on this machine.

    Args:
        plan: module, optionally with `PACKAGES`, more packages whose versions
            are reported, and `DEVICE`, "gpu" if the GPU is reported too.
        backends: list of str.
        quick: bool.

    Returns:
        Dict with `quick`, `machine`, `versions`, and, for each backend,
        `environment`.
    """
    packages = (*_PACKAGES, *getattr(plan, "PACKAGES", ()))
    settings = {
        key: value
        for key, value in sorted(os.environ.items())
        if key.startswith(_SETTINGS)
    }
    return {
        "quick": quick,
        "machine": {
            "cpu": cpu(),
            "cores": cores(),
            "system": platform.system(),
            **((gpu() or {}) if getattr(plan, "DEVICE", "") == "gpu" else {}),
        },
        "versions": {
            "python": platform.python_version(),
            **{one: _version(one) for one in packages},
        },
        "environment": {backend: settings for backend in sorted(backends)},
    }


def check_alike(old, conditions, cases):
    """Checks that part of a table is measured under the same conditions.

    Settings are compared per backend: a backend that is measured again in all
    cases may have new settings.

    Args:
        old: dict, from `read`.
        conditions: dict, from `here`.
        cases: list of str. The names of the cases to measure.

    Raises:
        ValueError: the machine, the versions or the settings differ.
    """
    before, now = (
        {
            "quick": one["quick"],
            "versions": one["versions"],
            **{k: v for k, v in one["machine"].items() if k != "matrix_gflops"},
        }
        for one in (old, conditions)
    )
    for backend, settings in conditions["environment"].items():
        left = [
            one["case"]["name"]
            for one in old["results"]
            if one["case"]["name"] not in cases
            and any(e["backend"] == backend for e in one["contestants"])
        ]
        if left and backend in old["environment"]:
            before[backend] = old["environment"][backend]
            now[backend] = settings
    if before != now:
        raise ValueError(
            "`--cases` and `--only` must be measured where the rest of the "
            f"table was. Received: {now} beside {before}"
        )


def merged(old, new, names):
    """Replaces the results that were measured again.

    Contestants of other backends keep their results.

    Args:
        old: dict, from `read`.
        new: dict, from `complete`, measured under conditions that passed
            `check_alike`.
        names: list of str. The cases of the table, in order.

    Returns:
        Dict: `new` with the other cases and contestants of `old`.
    """
    results = {one["case"]["name"]: one for one in old["results"]}
    for one in new["results"]:
        name = one["case"]["name"]
        before = results.get(name, one)["contestants"]
        found = {e["name"]: e for e in [*before, *one["contestants"]]}
        results[name] = {**one, "contestants": list(found.values())}
    peaks = (one["machine"]["matrix_gflops"] for one in (old, new))
    return {
        **new,
        "machine": {
            **new["machine"],
            "matrix_gflops": {k: v for part in peaks for k, v in part.items()},
        },
        "environment": old["environment"] | new["environment"],
        "results": [results[n] for n in names if n in results],
    }


def write(result, path):
    """Writes a report as JSON, atomically."""
    replace(path, json.dumps(result, indent=1) + "\n")


def write_all(result, folder):
    """Writes a report as JSON, Markdown and a figure.

    Args:
        result: dict, from `complete`.
        folder: path.

    Returns:
        List of the paths.
    """
    data, page, drawn = (
        pathlib.Path(folder) / f"{result['table']}.{ending}"
        for ending in ("json", "md", "png")
    )
    write(result, data)
    replace(page, table.markdown(result))
    replace(drawn, picture.png(result))
    return [data, page, drawn]


def read(path):
    """Reads a report."""
    return json.loads(pathlib.Path(path).read_text("utf-8"))


def replace(path, content):
    """Writes str or bytes to a file atomically."""
    path = pathlib.Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.partial")
    partial.write_bytes(
        content.encode() if isinstance(content, str) else content
    )
    os.replace(partial, path)


def _version(package):
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def _peaks(plan, backends):
    """Measures the peak rates of matrix products.

    Args:
        plan: module, optionally with `PEAKS`, dict: the size of the matrices,
            by dtype. Default: float32 matrices of the default size.
        backends: list of str.

    Returns:
        Dict of rates in GFLOP/s: by backend, or by backend and dtype if the
        plan has `PEAKS`.
    """
    if not hasattr(plan, "PEAKS"):
        return {one: _peak(one)[0] for one in backends}
    if not plan.PEAKS:
        return {}
    sizes = [str(one) for pair in plan.PEAKS.items() for one in pair]
    return {
        _peak_name(backend, {"dtype": dtype}): rate
        for backend in backends
        for dtype, rate in zip(plan.PEAKS, _peak(backend, *sizes), strict=True)
    }


def _peak_name(backend, case):
    return f"{backend} {case['dtype']}" if "dtype" in case else backend


def _peak(backend, *sizes):
    output = subprocess.run(
        [sys.executable, "-m", "benchmarks.harness.matrix_peak", *sizes],
        cwd=ROOT,
        env={**os.environ, "KERAS_BACKEND": backend},
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    ).stdout
    return [float(line) for line in output.split()[-max(1, len(sizes) // 2) :]]
