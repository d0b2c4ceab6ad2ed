"""The command `python -m tools.matrix`."""

import argparse
import json
import pathlib
import sys

from tools.matrix.environments import BACKENDS, EXTRAS, VERSIONS, run
from tools.matrix.page import page

DESCRIPTION = """\
Installs every extra with every backend in its own environment, and runs a
program that needs it. Then the oldest supported and the newest versions of
Keras and the backends run tests of layers and models.

Writes docs/results/installation.json after each environment, and from it the
page docs/results/installation.md. An environment that has failed is run again
by the next run; --again runs all of them again."""
ROOT = pathlib.Path(__file__).parents[2]
RESULTS = ROOT / "docs" / "results" / "installation.json"


def main(arguments):
    """Runs the command; returns its exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m tools.matrix",
        description=DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    rows = [*EXTRAS, *VERSIONS]
    add("--backends", nargs="+", choices=BACKENDS, default=BACKENDS)
    add("--only", nargs="+", choices=rows, default=rows, metavar="ROW")
    add("--again", action="store_true", help="run what has passed, too")
    add("--results", type=pathlib.Path, default=RESULTS)
    options = parser.parse_args(arguments)
    found = {}
    if options.results.exists():
        found = json.loads(options.results.read_text(encoding="utf-8"))
    todo = [
        (row, backend)
        for row in options.only
        for backend in options.backends
        if options.again or not _passed(found.get(f"{row}, {backend}"))
    ]
    for number, (row, backend) in enumerate(todo, 1):
        title = f"{number}/{len(todo)} {row} on {backend}"
        print(f"{title} ...", file=sys.stderr, flush=True)
        result = run(row, backend)
        found[f"{row}, {backend}"] = result
        _write(options.results, found)
        print(
            f"{title}: {result['outcome']} after {result['seconds']} s",
            file=sys.stderr,
            flush=True,
        )
        if result["outcome"] != "passed":
            print(result["output"], file=sys.stderr)
    failed = [name for name, one in found.items() if not _passed(one)]
    print(f"Wrote {options.results.with_suffix('.md')}")
    if failed:
        print(f"make matrix: failed in {'; '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


def _passed(result):
    return result is not None and result["outcome"] == "passed"


def _write(path, found):
    """Writes results and page; a program that is killed loses no result."""
    text = json.dumps(found, indent=1, sort_keys=True) + "\n"
    for target, content in (path, text), (path.with_suffix(".md"), page(found)):
        partial = target.with_name(f".{target.name}")
        partial.write_text(content, encoding="utf-8")
        partial.replace(target)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
