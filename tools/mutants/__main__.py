"""The command `python -m tools.mutants`."""

import argparse
import collections
import dataclasses
import json
import os
import pathlib
import subprocess
import sys

from tools.mutants.coverage_of_tests import TestCoverage
from tools.mutants.drawing import Mutant, draw
from tools.mutants.running import run_mutants

ROOT = pathlib.Path(__file__).parents[2]
DESCRIPTION = """\
Draws random mutants of the library, runs the tests that cover the lines of each
(fastest first, until one fails), and lists the mutants that survive.

All tests first run once under coverage.py, which records the lines that each
test covers. The backend is KERAS_BACKEND (default: torch). The report, with the
list of mutants, is written to the folder --out; --mutants REPORT runs the same
list again."""


def main(arguments):
    """Runs the command; returns its exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m tools.mutants",
        description=DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("--number", type=int, default=100, help="mutants (default 100)")
    add("--seed", type=int, default=0, help="random seed (default 0)")
    add("--mutants", type=pathlib.Path, help="report whose list to run again")
    add("--tree", type=pathlib.Path, default=ROOT, help="checkout to test")
    add("--out", type=pathlib.Path, default=ROOT / "runs" / "mutants")
    add("--tests", default="tests", help="tests to run (default all)")
    add("--workers", type=int, default=2, help="processes (default 2)")
    add("--limit", type=float, default=300, help="seconds per mutant")
    add("--coverage", type=pathlib.Path, help="coverage folder to reuse")
    options = parser.parse_args(arguments)
    tree, out = options.tree.resolve(), options.out.resolve()
    out.mkdir(parents=True, exist_ok=True)
    if options.mutants:
        report = json.loads(options.mutants.read_text(encoding="utf-8"))
        mutants = [Mutant(**fields) for fields in report["mutants"]]
        # Tests that killed mutants in that run are tried first.
        killers = {result["by"] for result in report.get("results", ())}
    else:
        killers = set()
        mutants = draw(tree, options.number, options.seed)
    backend = os.environ.setdefault("KERAS_BACKEND", "torch")
    recorded = options.coverage or out / "coverage"
    if not options.coverage:
        subprocess.run(
            [
                *(sys.executable, "-m", "tools.run_tests"),
                *("--backends", backend),
                *("--tests", options.tests, "--coverage", str(recorded)),
            ],
            cwd=tree,
            check=True,
        )
    coverage = TestCoverage.read(tree, recorded, backend)
    outcomes = []
    for outcome in run_mutants(
        mutants, coverage, tree, out, options.workers, options.limit, killers
    ):
        outcomes.append(outcome)
        print(
            f"{len(outcomes)}/{len(mutants)} {outcome.result} after "
            f"{outcome.seconds} s: {outcome.mutant.name}",
            flush=True,
        )
        _write(out / "report.json", tree, options.seed, mutants, outcomes)
    counts = collections.Counter(outcome.result for outcome in outcomes)
    print(", ".join(f"{counts[name]} {name}" for name in sorted(counts)))
    for outcome in outcomes:
        if outcome.result == "survived":
            print(f"survived {outcome.tests} tests: {outcome.mutant.name}")
    print(f"Wrote {out / 'report.json'}")
    return 0


def _write(path, tree, seed, mutants, outcomes):
    """Writes the list of mutants and the results so far."""
    commit = subprocess.run(
        ["git", "rev-parse", "HEAD:keras_attn"],
        cwd=tree,
        capture_output=True,
        text=True,
    ).stdout.strip()
    results = [
        {
            "mutant": outcome.mutant.name,
            **{
                name: value
                for name, value in dataclasses.asdict(outcome).items()
                if name != "mutant"
            },
        }
        for outcome in sorted(outcomes, key=lambda one: one.mutant.name)
    ]
    report = {
        "keras_attn": commit,
        "seed": seed,
        "mutants": [dataclasses.asdict(mutant) for mutant in mutants],
        "results": results,
    }
    unfinished = path.with_suffix(".part")
    unfinished.write_text(json.dumps(report, indent=1) + "\n", "utf-8")
    unfinished.replace(path)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
