"""One contestant in a process of its own.

It reads one JSON object a line from standard input and answers each with one:
`{"steps": 6}` runs six steps and gives back the seconds, and the loss, by which
a reader can see that all learn the same. `{"case": {...}}` prepares another
case. What the libraries print goes to standard error, so that the answers stay
alone.
"""

import importlib
import json
import os
import sys
import time

from benchmarks.harness.memory import forget_peak, peak_mib


def main():
    """Serves until the input ends."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)

    def answer(**values):
        print(json.dumps(values), file=answers, flush=True)

    module, case, options = sys.argv[1], *map(json.loads, sys.argv[2:])
    contestant = importlib.import_module(module)
    prepared = contestant.prepare(case, **options)
    forget_peak()
    base = peak_mib()
    answer(ready=True)
    for line in sys.stdin:
        asked = json.loads(line)
        if "case" in asked:
            prepared = contestant.prepare(asked["case"], **options)
            answer(ready=True)
            continue
        steps = asked["steps"]
        started = time.perf_counter()
        loss = prepared(steps)
        seconds = time.perf_counter() - started
        answer(seconds=seconds, loss=loss, peak_mib=peak_mib(), base_mib=base)


if __name__ == "__main__":
    main()
