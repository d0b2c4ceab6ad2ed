"""Runs one benchmark table: `python -m benchmarks training_step`."""

import argparse
import importlib
import math
import os
import pathlib
import sys
import time

from benchmarks.harness import device, history, quick_run, race, report
from benchmarks.harness.quick_run import TABLES

ROOT = pathlib.Path(__file__).parents[1]
DOCS = ROOT / "docs/benchmarks"
# The figures of quick runs mean nothing.
UNKEPT = ROOT / "runs/benchmarks"


def main(arguments=None):
    """Measures a table and writes it as JSON, Markdown and a figure."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        epilog="With QUICK=1 in the environment: a smoke run on tiny sizes.",
    )
    parser.add_argument(
        "table",
        choices=(*TABLES, "all"),
        help="all: every table and program, with QUICK=1 only",
    )
    parser.add_argument(
        "--rounds", type=int, help="measurements per contestant"
    )
    parser.add_argument(
        "--only",
        default="",
        help="comma-separated backends to measure; other results are kept",
    )
    parser.add_argument(
        "--cases",
        default="",
        help="substring of the cases to measure; other results are kept",
    )
    parser.add_argument(
        "--out",
        type=pathlib.Path,
        help="output folder; default: docs/benchmarks, and runs/benchmarks "
        "with QUICK=1",
    )
    parser.add_argument(
        "--limit",
        type=float,
        default=math.inf,
        help="seconds after which no further case starts",
    )
    parser.add_argument(
        "--keep-going",
        action="store_true",
        help="leave out contestants that fail, instead of stopping",
    )
    parser.add_argument(
        "--redraw",
        action="store_true",
        help="recompute ratios and outputs from the JSON, without measuring",
    )
    given = parser.parse_args(arguments)
    quick = os.environ.get("QUICK", "0") not in ("", "0")
    out = given.out or (UNKEPT if quick else DOCS)
    if given.table == "all":
        if not quick:
            parser.error("`all` takes a day without QUICK=1")
        return quick_run.everything(out)
    target = out / f"{given.table}.json"
    new = []
    if given.redraw:
        result = report.read(target)
        report.compare(result["results"])
    else:
        plan = importlib.import_module(f"benchmarks.{given.table}.plan")
        only = set(filter(None, given.only.split(",")))
        on_gpu = getattr(plan, "DEVICE", "") == "gpu"
        if on_gpu and not quick and device.gpu() is None:
            parser.error(f"{given.table} needs a GPU")
        rounds = given.rounds or (2 if quick else plan.ROUNDS)
        here, absent = quick_run.present(
            [o for o in plan.CONTESTANTS if not only or o.backend in only]
        )
        if absent and not quick:
            parser.error(
                f"not installed: {', '.join(absent)} (see make benchmarks)"
            )
        every = plan.QUICK_CASES if quick else plan.CASES
        cases = [case for case in every if given.cases in case["name"]]
        if not cases:
            parser.error(f"no case name contains {given.cases!r}")
        part = (only or len(cases) < len(every)) and target.exists()
        if part:
            # Before measuring, which can take an hour.
            conditions = report.here(plan, {o.backend for o in here}, quick)
            names = [case["name"] for case in cases]
            try:
                report.check_alike(report.read(target), conditions, names)
            except ValueError as error:
                parser.error(str(error))
        result = race.run(
            plan,
            cases,
            here,
            rounds,
            log=sys.stderr,
            deadline=time.monotonic() + given.limit,
            keep_going=given.keep_going,
        )
        if not result:
            parser.error("nothing could be measured")
        result = report.complete(result, plan, given.table, quick)
        result["absent"] = absent
        if not quick:
            new = history.entries(result)
        if part:
            names = [case["name"] for case in every]
            result = report.merged(report.read(target), result, names)
    for path in report.write_all(result, out):
        print(path)
    if new:
        history.append(out / history.NAME, new)
        print(f"{out / history.NAME}\nDraw it: python -m tools.diagrams")
    return 0


if __name__ == "__main__":
    sys.exit(main())
