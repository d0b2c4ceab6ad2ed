"""The command `python -m tools.tutorials`."""

import argparse
import os
import sys

from tools.tutorials import lists
from tools.tutorials import stamp as stamps
from tools.tutorials.build import PAGES, build, rewrite
from tools.tutorials.failure import BuildError
from tools.tutorials.scripts import discover

DESCRIPTION = """\
Runs the tutorials (scripts in percent format in the folder `tutorials`) and
writes their pages, with outputs and figures, to `docs/tutorials`.

  build NAME ...   run these, on the backend KERAS_BACKEND (default: torch)
  build            run those whose page is not from a full run of their current
                   source
  rewrite NAME ... write these pages again from the outputs of their last runs,
                   with the current prose; the code must be unchanged
  rewrite          the same for all, the list of their exercises and the index
                   of the folder
  list             list the tutorials and the state of their pages

With QUICK=1 a tutorial runs only a few steps, and its page states that."""


def main(arguments):
    """Runs the command; returns its exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m tools.tutorials",
        description=DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("command", choices=["build", "rewrite", "list"])
    parser.add_argument("names", nargs="*", metavar="NAME")
    options = parser.parse_args(arguments)
    scripts = discover()
    unknown = sorted(set(options.names) - scripts.keys())
    if unknown:
        return _complain(
            f"NAME must be one of {', '.join(scripts)}. Received: {unknown[0]}"
        )
    chosen = {
        name: script
        for name, script in scripts.items()
        if name in options.names or not options.names
    }
    try:
        return _COMMANDS[options.command](chosen, bool(options.names))
    except BuildError as error:
        return _complain(error)


def wrong(script, pages=PAGES):
    """Returns why the page of a tutorial is outdated; "" if it is not."""
    stamp = stamps.read(pages / script.stem)
    if stamp is None:
        return "it has no page"
    if stamps.has_changed(script, stamp):
        return "it has changed since its page was built"
    return "its page is from a quick run" if stamp["quick"] else ""


def _build(scripts, named):
    quick = os.environ.get("QUICK", "0") not in ("", "0", "no", "false")
    backend = os.environ.get("KERAS_BACKEND", "torch")
    for name, script in scripts.items():
        if not named and not wrong(script):
            print(f"{name}: its page is up to date")
            continue

        def say(line, name=name):
            print(f"{name} on {backend}: {line}", flush=True)

        print(f"Wrote {build(script, backend, quick, say=say)}")
    return 0


def _rewrite(scripts, named):
    for script in scripts.values():
        print(f"Wrote {rewrite(script)}")
    if not named:
        for path in lists.write():
            print(f"Wrote {path}")
    return 0


def _list(scripts, named):
    for name, script in scripts.items():
        print(f"{name}: {wrong(script) or 'its page is up to date'}")
    return 0


def _complain(sentence):
    print(f"tutorials: {sentence}", file=sys.stderr)
    return 2


_COMMANDS = {"build": _build, "list": _list, "rewrite": _rewrite}

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
