"""Runs contestants in alternation and records every measured time."""

import contextlib
import json
import math
import os
import pathlib
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).parents[2]


class Runner:
    """The process of one contestant.

    Args:
        contestant: `Contestant`.
        case: dict. The sizes, passed to the contestant's `prepare`.
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
            env={
                # The processes share the GPU.
                "XLA_PYTHON_CLIENT_PREALLOCATE": "false",
                **os.environ,
                "KERAS_BACKEND": contestant.backend,
            },
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
        )

    def ready(self):
        """Waits until the process has prepared its case.

        Raises:
            RuntimeError: the process has ended. The message has the last lines
                that it printed.
        """
        self._answer()

    def prepare(self, case):
        """Prepares another case in the same process."""
        self._send(case=case)

    def run(self, steps):
        """Runs steps and returns the worker's measurements as a dict."""
        self._send(steps=steps)
        return self._answer()

    def host_reads(self):
        """Returns the reads of tensors on the host in a step."""
        self._send(host_reads=True)
        return self._answer()["host_reads"]

    def close(self):
        """Ends the process."""
        # A process that has failed does not read its last request.
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.close()
        self._process.stdout.close()
        self._process.wait()
        self._errors.close()

    def _send(self, **request):
        print(json.dumps(request), file=self._process.stdin)
        self._process.stdin.flush()

    def _answer(self):
        line = self._process.stdout.readline()
        if line:
            return json.loads(line)
        raise self._ended(self._process.wait())

    def _ended(self, status):
        self._errors.seek(0)
        last = self._errors.read().strip().splitlines()[-12:]
        return RuntimeError(
            f"The contestant {self.contestant.name} ended with status "
            f"{status}:\n" + "\n".join(last)
        )


def run(
    plan,
    cases,
    contestants,
    rounds,
    log=None,
    deadline=math.inf,
    keep_going=False,
    runner=Runner,
):
    """Measures contestants in cases of a plan.

    In each case all contestants are started, warmed up one after another, and
    then take turns, so that a machine that slows down affects all of them. Only
    one computes at a time; the others wait for their next line of input.
    Consecutive cases with the same `process` share processes, because starting
    them takes longer than a short case; each must need more memory than the one
    before. If the plan sets `APART`, only the contestants of one backend run at
    a time, which needs less memory.

    Args:
        plan: module with `STEPS`, steps per measurement, and optionally
            `APART`, and `HOST_READS`, whether to count these.
        cases: list of dicts; `steps` in a case overrides `STEPS`.
        contestants: list of `Contestant`.
        rounds: int. Measurements per contestant.
        log: file for progress messages, or None.
        deadline: float. No case starts after this `time.monotonic()`.
        keep_going: bool. Leave out a contestant that fails in a case instead
            of raising its error.
        runner: class of the processes. Default: `Runner`.

    Returns:
        List of dicts, one per measured case: `case` and `contestants`, each
        with its name, backend, first step and times, in seconds, last loss and
        memory.
    """
    field_of_each = [
        one.backend if getattr(plan, "APART", False) else ""
        for one in contestants
    ]
    results = []
    for group in _groups(cases):
        entries = {}
        for field in dict.fromkeys(field_of_each):
            here = [
                c
                for c, f in zip(contestants, field_of_each, strict=True)
                if f == field
            ]
            entries |= _raced(
                plan, group, here, rounds, log, deadline, keep_going, runner
            )
        for case in group:
            found = [
                entries[case["name"], one.name]
                for one in contestants
                if (case["name"], one.name) in entries
            ]
            if not found and (keep_going or time.monotonic() > deadline):
                continue
            results.append({"case": case, "contestants": found})
    return results


def _raced(
    plan, group, contestants, rounds, log, deadline, keep_going, runner_class
):
    """Returns entries by the names of case and contestant."""
    entries = {}
    with contextlib.ExitStack() as stack:
        started = {}

        def attempt(name, action):
            """Returns the result of an action, or None if it failed."""
            try:
                return action()
            except (RuntimeError, BrokenPipeError) as error:
                if not keep_going:
                    raise
                _say(log, f"{name} failed. {error}")
                # Its next case starts a new process.
                started.pop(name, None)

        for case in group:
            if time.monotonic() > deadline:
                _say(log, f"{case['name']}: not measured, out of time")
                continue
            runners = []
            for one in contestants:
                if not _takes_part(one, case):
                    continue
                if one.name in started:
                    started[one.name].prepare(case)
                else:
                    _say(log, f"{case['name']}: {one.name} starts")
                    process = runner_class(one, case)
                    stack.callback(process.close)
                    started[one.name] = process
                runners.append(started[one.name])
            runners = [
                runner
                for runner in runners
                if attempt(
                    runner.contestant.name, lambda r=runner: r.ready() or True
                )
            ]
            steps = case["steps"] if "steps" in case else plan.STEPS
            found = _measured(runners, case, steps, rounds, log, attempt)
            if getattr(plan, "HOST_READS", False):
                for entry in found:
                    reads = attempt(
                        entry["name"], started[entry["name"]].host_reads
                    )
                    entry["host_reads"] = reads
            for entry in found:
                entries[case["name"], entry["name"]] = entry
    return entries


def _takes_part(contestant, case):
    return not contestant.cases or case["name"] in contestant.cases


def _groups(cases):
    groups = {}
    for case in cases:
        groups.setdefault(case.get("process", case["name"]), []).append(case)
    return groups.values()


def _measured(runners, case, steps, rounds, log, attempt):
    racing = []
    for runner in runners:
        contestant = runner.contestant
        _say(log, f"{case['name']}: {contestant.name} warms up")

        def warm_up(runner=runner):
            first = runner.run(1)
            # Twice, for compilers and allocators that adapt to the first steps.
            for _ in range(2):
                runner.run(steps)
            return first

        first = attempt(contestant.name, warm_up)
        if first is None:
            continue
        entry = {
            "name": contestant.name,
            "backend": contestant.backend,
            "first_seconds": first["seconds"],
            "base_mib": first["base_mib"],
            "seconds": [],
        }
        racing.append((runner, entry))
    for number in range(rounds):
        _say(log, f"{case['name']}: round {number + 1} of {rounds}")
        for runner, entry in list(racing):
            seen = attempt(entry["name"], lambda r=runner: r.run(steps))
            if seen is None:
                racing.remove((runner, entry))
                continue
            entry["seconds"].append(seen["seconds"] / steps)
            entry["loss"] = seen["loss"]
            entry["peak_mib"] = seen["peak_mib"]
    return [entry for _, entry in racing]


def _say(log, text):
    if log is not None:
        print(text, file=log, flush=True)
