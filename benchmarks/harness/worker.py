"""Runs one contestant in its own process.

It reads one JSON object per line from standard input and answers each with one:
`{"steps": 6}` runs six steps and returns the seconds and the loss, which shows
that all contestants learn the same. If the contestant returns a function, it
computes the loss after the timing. `{"case": {...}}` prepares another case.
Output of the libraries is redirected to standard error, so that standard output
has the answers only.
"""

import importlib
import json
import os
import sys
import time

from benchmarks.harness import device, memory


def main():
    """Serves the contestant that the command line names."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    module, case, options = sys.argv[1], *map(json.loads, sys.argv[2:])
    serve(module, case, options, sys.stdin, answers)


def serve(module, case, options, requests, answers):
    """Answers requests until they end.

    Args:
        module: str. The contestant's module.
        case: dict.
        options: dict of arguments of its `prepare`.
        requests: file of JSON lines.
        answers: file, written one line at a time.
    """

    def answer(**values):
        print(json.dumps(values), file=answers, flush=True)

    contestant = importlib.import_module(module)
    prepared = contestant.prepare(case, **options)
    measured = device if case.get("device") == "gpu" else memory
    measured.forget_peak()
    base = measured.peak_mib()
    answer(ready=True)
    for line in requests:
        request = json.loads(line)
        if "case" in request:
            prepared = contestant.prepare(request["case"], **options)
            if measured is device:
                # It counts per case; memory that the system has does not.
                device.forget_peak()
                base = device.peak_mib()
            answer(ready=True)
            continue
        steps = request["steps"]
        started = time.perf_counter()
        loss = prepared(steps)
        seconds = time.perf_counter() - started
        peak = measured.peak_mib()
        if callable(loss):
            loss = loss()
        answer(seconds=seconds, loss=loss, peak_mib=peak, base_mib=base)


if __name__ == "__main__":
    main()
