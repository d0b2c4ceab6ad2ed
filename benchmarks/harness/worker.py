"""Runs one contestant in its own process.

It reads one JSON object per line from standard input and answers each with one:
`{"steps": 6}` runs six steps and returns the seconds and the loss, which shows
that all contestants learn the same. If the contestant returns a function, it
computes the loss after the timing. `{"case": {...}}` prepares another case, and
`{"host_reads": true}` counts the reads of tensors on the host in a step.
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
        if "host_reads" in request:
            answer(host_reads=_host_reads(prepared))
            continue
        steps = request["steps"]
        started = time.perf_counter()
        loss = prepared(steps)
        seconds = time.perf_counter() - started
        peak = measured.peak_mib()
        if callable(loss):
            loss = loss()
        answer(seconds=seconds, loss=loss, peak_mib=peak, base_mib=base)


def _host_reads(prepared):
    """Returns how often a step reads a tensor on the host."""
    from keras_attn.testing import host_reads

    found = []
    for steps in (1, 3):
        with host_reads() as reads:
            prepared(steps)
        found.append(len(reads))
    # What a call of any number of steps reads is no part of a step.
    return (found[1] - found[0]) / 2


if __name__ == "__main__":
    main()
