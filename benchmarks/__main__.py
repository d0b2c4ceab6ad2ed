"""Runs one benchmark table: `python -m benchmarks training_step`."""

import argparse
import importlib
import importlib.util
import math
import os
import pathlib
import sys
import time

from benchmarks.harness import device, picture, race, report, table

TABLES = (
    "training_step",
    "training_step_gpu",
    "training_parts",
    "attention",
    "attention_gpu",
    "attention_memory",
    "projections",
    "decoding",
    "decoding_gpu",
    "step_capture",
    "segment_memory",
)
DOCS = pathlib.Path(__file__).parents[1] / "docs/benchmarks"


def main(arguments=None):
    """Measures a table and writes it as JSON, Markdown and a figure."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        epilog="With QUICK=1 in the environment: a smoke run on tiny sizes.",
    )
    parser.add_argument("table", choices=TABLES)
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
        default=DOCS,
        help="output folder; default: docs/benchmarks",
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
    target = given.out / f"{given.table}.json"
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
        here, absent = _present(
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
        if part:
            names = [case["name"] for case in every]
            result = report.merged(report.read(target), result, names)
    report.write(result, target)
    page = given.out / f"{given.table}.md"
    report.replace(page, table.markdown(result))
    drawn = given.out / f"{given.table}.png"
    report.replace(drawn, picture.png(result))
    print(f"{target}\n{page}\n{drawn}")


def _present(contestants):
    """Returns the contestants that can run, and the missing packages."""
    absent = {
        one.needs
        for one in contestants
        if one.needs and importlib.util.find_spec(one.needs) is None
    }
    return [o for o in contestants if o.needs not in absent], sorted(absent)


if __name__ == "__main__":
    main()
