"""Runs one table: `python -m benchmarks training_step`."""

import argparse
import importlib
import importlib.util
import os
import pathlib
import sys

from benchmarks.harness import picture, race, report, table

TABLES = (
    "training_step",
    "training_parts",
    "attention",
    "attention_memory",
    "projections",
    "decoding",
    "segment_memory",
)
DOCS = pathlib.Path(__file__).parents[1] / "docs/benchmarks"


def main(arguments=None):
    """Measures a table, writes its JSON, its Markdown and a picture."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        epilog="QUICK=1 in the environment: tiny sizes, to see that it runs.",
    )
    parser.add_argument("table", choices=TABLES)
    parser.add_argument("--rounds", type=int, help="measurements of each")
    parser.add_argument(
        "--only", default="", help="backends, with commas; the others stay"
    )
    parser.add_argument(
        "--cases",
        default="",
        help="part of the names of the cases to measure; the others stay",
    )
    parser.add_argument(
        "--out",
        type=pathlib.Path,
        default=DOCS,
        help="folder for table, figures and picture; default: the site's",
    )
    parser.add_argument(
        "--redraw",
        action="store_true",
        help="compare and write anew what was measured, from its JSON",
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
            parser.error(f"no case is called anything with {given.cases!r}")
        part = (only or len(cases) < len(every)) and target.exists()
        if part:
            # Before an hour of measuring, not behind it.
            conditions = report.here(plan, {o.backend for o in here}, quick)
            names = [case["name"] for case in cases]
            try:
                report.check_alike(report.read(target), conditions, names)
            except ValueError as error:
                parser.error(str(error))
        result = race.run(plan, cases, here, rounds, log=sys.stderr)
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
    """Returns those that can run, and the packages that the others lack."""
    absent = {
        one.needs
        for one in contestants
        if one.needs and importlib.util.find_spec(one.needs) is None
    }
    return [o for o in contestants if o.needs not in absent], sorted(absent)


if __name__ == "__main__":
    main()
