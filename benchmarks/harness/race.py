"""Lets contestants run in turn, and keeps every time that was measured."""

import contextlib
import json
import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).parents[2]


class Runner:
    """Holds the process of one contestant.

    Args:
        contestant: `plan.Contestant`.
        case: dict. The sizes, as the contestant's `prepare` wants them.
    """

    def __init__(self, contestant, case):
        self.contestant = contestant
        self._errors = tempfile.TemporaryFile("w+")
        self._process = subprocess.Popen(
            [
                sys.executable,
                "-m",
                "benchmarks.harness.worker",
                contestant.module,
                json.dumps(case),
                json.dumps(contestant.options or {}),
            ],
            cwd=ROOT,
            env={**os.environ, "KERAS_BACKEND": contestant.backend},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
        )
        try:
            self._answer()
        except RuntimeError:
            self.close()
            raise

    def run(self, steps):
        """Runs steps; returns what the worker measured, as a dict."""
        print(json.dumps({"steps": steps}), file=self._process.stdin)
        self._process.stdin.flush()
        return self._answer()

    def close(self):
        """Ends the process."""
        self._process.stdin.close()
        self._process.stdout.close()
        self._process.wait()
        self._errors.close()

    def _answer(self):
        line = self._process.stdout.readline()
        if line:
            return json.loads(line)
        self._errors.seek(0)
        last = self._errors.read().strip().splitlines()[-12:]
        raise RuntimeError(
            f"The contestant {self.contestant.name} ended with status "
            f"{self._process.wait()}:\n" + "\n".join(last)
        )


def run(plan, contestants, rounds, quick=False, log=None):
    """Measures contestants in all cases of a plan.

    In each case all contestants are started and warmed up one after another,
    then take turns: a machine that slows down slows all of them down. Only
    one computes at a time; the others wait for their next line of input.

    Args:
        plan: module with `CASES`, `QUICK_CASES` and `STEPS`.
        contestants: list of `Contestant`.
        rounds: int. Measurements of each contestant.
        quick: bool. Tiny sizes, to see that everything runs.
        log: file that is told of the progress, or None.

    Returns:
        List of dicts, one a case: `case` and `contestants`, each with its
        name, backend, first step and times, in seconds, last loss and memory.
    """
    results = []
    for case in plan.QUICK_CASES if quick else plan.CASES:
        with contextlib.ExitStack() as stack:
            entries = [
                _start(stack, one, case, plan.STEPS, log) for one in contestants
            ]
            for number in range(rounds):
                _say(log, f"{case['name']}: round {number + 1} of {rounds}")
                for runner, entry in entries:
                    seen = runner.run(plan.STEPS)
                    entry["seconds"].append(seen["seconds"] / plan.STEPS)
                    entry["loss"] = seen["loss"]
                    entry["peak_mib"] = seen["peak_mib"]
        results.append(
            {"case": case, "contestants": [entry for _, entry in entries]}
        )
    return results


def _start(stack, contestant, case, steps, log):
    _say(log, f"{case['name']}: {contestant.name} warms up")
    runner = Runner(contestant, case)
    stack.callback(runner.close)
    first = runner.run(1)
    # Twice: what a compiler or an allocator learns from the first steps.
    for _ in range(2):
        runner.run(steps)
    entry = {
        "name": contestant.name,
        "backend": contestant.backend,
        "first_seconds": first["seconds"],
        "base_mib": first["base_mib"],
        "seconds": [],
    }
    return runner, entry


def _say(log, text):
    if log is not None:
        print(text, file=log, flush=True)
