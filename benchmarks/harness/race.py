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

    def ready(self):
        """Waits until the process has prepared what it is to run.

        Raises:
            RuntimeError: it has ended, with the last lines that it printed.
        """
        self._answer()

    def prepare(self, case):
        """Turns to another case, in the same process."""
        self._send(case=case)

    def run(self, steps):
        """Runs steps; returns what the worker measured, as a dict."""
        self._send(steps=steps)
        return self._answer()

    def close(self):
        """Ends the process."""
        self._process.stdin.close()
        self._process.stdout.close()
        self._process.wait()
        self._errors.close()

    def _send(self, **what):
        print(json.dumps(what), file=self._process.stdin)
        self._process.stdin.flush()

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


def run(plan, cases, contestants, rounds, log=None):
    """Measures contestants in cases of a plan.

    In each case all contestants are started, warmed up one after another, and
    then take turns: a machine that slows down slows all of them down. Only
    one computes at a time; the others wait for their next line of input.
    Neighbours of one `process` share processes: starting them takes longer
    than a short case. Of these each must need more memory than the one before.
    Where a plan is `APART`, only contestants of one backend are there at a
    time, which needs less memory, too.

    Args:
        plan: module with `STEPS`, steps in a measurement, and perhaps `APART`.
        cases: list of dicts; a case may have `steps` of its own.
        contestants: list of `Contestant`.
        rounds: int. Measurements of each contestant.
        log: file that is told of the progress, or None.

    Returns:
        List of dicts, one a case: `case` and `contestants`, each with its
        name, backend, first step and times, in seconds, last loss and memory.
    """
    fields = [
        one.backend if getattr(plan, "APART", False) else ""
        for one in contestants
    ]
    results = []
    for group in _groups(cases):
        entries = {}
        for field in dict.fromkeys(fields):
            here = [
                c
                for c, f in zip(contestants, fields, strict=True)
                if f == field
            ]
            entries |= _raced(plan, group, here, rounds, log)
        for case in group:
            found = [
                entries[case["name"], one.name]
                for one in contestants
                if _takes_part(one, case)
            ]
            results.append({"case": case, "contestants": found})
    return results


def _raced(plan, group, contestants, rounds, log):
    """Entries by the names of case and contestant."""
    entries = {}
    with contextlib.ExitStack() as stack:
        started = {}
        for case in group:
            runners = []
            for one in contestants:
                if not _takes_part(one, case):
                    continue
                if one.name in started:
                    started[one.name].prepare(case)
                else:
                    started[one.name] = _started(stack, one, case, log)
                runners.append(started[one.name])
            for runner in runners:
                runner.ready()
            steps = case["steps"] if "steps" in case else plan.STEPS
            for entry in _measured(runners, case, steps, rounds, log):
                entries[case["name"], entry["name"]] = entry
    return entries


def _takes_part(contestant, case):
    return not contestant.cases or case["name"] in contestant.cases


def _groups(cases):
    groups = {}
    for case in cases:
        groups.setdefault(case.get("process", case["name"]), []).append(case)
    return groups.values()


def _started(stack, contestant, case, log):
    _say(log, f"{case['name']}: {contestant.name} starts")
    runner = Runner(contestant, case)
    stack.callback(runner.close)
    return runner


def _measured(runners, case, steps, rounds, log):
    entries = []
    for runner in runners:
        contestant = runner.contestant
        _say(log, f"{case['name']}: {contestant.name} warms up")
        first = runner.run(1)
        # Twice: what a compiler or an allocator learns from the first steps.
        for _ in range(2):
            runner.run(steps)
        entries.append(
            {
                "name": contestant.name,
                "backend": contestant.backend,
                "first_seconds": first["seconds"],
                "base_mib": first["base_mib"],
                "seconds": [],
            }
        )
    for number in range(rounds):
        _say(log, f"{case['name']}: round {number + 1} of {rounds}")
        for runner, entry in zip(runners, entries, strict=True):
            seen = runner.run(steps)
            entry["seconds"].append(seen["seconds"] / steps)
            entry["loss"] = seen["loss"]
            entry["peak_mib"] = seen["peak_mib"]
    return entries


def _say(log, text):
    if log is not None:
        print(text, file=log, flush=True)
