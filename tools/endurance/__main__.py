"""The command `python -m tools.endurance`."""

import argparse
import datetime
import json
import pathlib
import random
import sys

DESCRIPTION = """\
Tests what only long runs show, on the backend KERAS_BACKEND.

  soak    Generates, trains and predicts with random sizes. Every answer must be
          the expected one, and neither memory nor the number of compiled
          programs may grow once all sizes have occurred.
  kills   Kills trainings at random moments, every second time while a
          checkpoint is being written. Each training must end with the same
          weights, bit for bit, as one that was never killed.
  page    Writes docs/results/endurance.md from the results of all backends.

The results are written to docs/results/endurance."""
ROOT = pathlib.Path(__file__).parents[2]
RESULTS = ROOT / "docs" / "results" / "endurance"


def main(arguments):
    """Runs the command; returns its exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m tools.endurance",
        description=DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("command", choices=["soak", "kills", "page"])
    add("--minutes", type=float, default=30.0, help="of the soak test")
    add("--number", type=int, default=40, help="number of kills")
    add("--seed", type=int, help="random seed (default: drawn and printed)")
    add("--out", type=pathlib.Path, default=RESULTS, help="folder of results")
    options = parser.parse_args(arguments)
    if options.command == "page":
        from tools.endurance.page import write

        write(RESULTS)
        return 0
    seed = options.seed
    if seed is None:
        seed = random.SystemRandom().randrange(1 << 32)
    print(f"seed: {seed}", flush=True)
    if options.command == "soak":
        from tools.endurance.soak import problems, soak

        report = soak(options.minutes, seed)
    else:
        from tools.endurance.kills import kill_trainings, problems

        report = kill_trainings(options.number, seed)
    report = {"command": options.command, "seed": seed} | conditions() | report
    options.out.mkdir(parents=True, exist_ok=True)
    path = options.out / f"{options.command}-{report['backend']}.json"
    path.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    print(f"Wrote {path}. Next: python -m tools.endurance page")
    found = problems(report)
    for problem in found:
        print(f"{options.command}: {problem}", file=sys.stderr)
    return 1 if found else 0


def conditions():
    """Returns date, machine and versions of a run, as a dict of str."""
    from keras_attn.info import information
    from tools.tutorials.facts import cores, cpu

    names = "keras-attn", "keras", "backend", "python"
    known = information()
    backend = known["backend"]
    return {
        "date": datetime.date.today().isoformat(),
        "machine": f"{cores()} of {cpu()}",
        "version": known[backend],
        **{name: known[name] for name in names},
    }


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
