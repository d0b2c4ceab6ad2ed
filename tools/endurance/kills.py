"""Kills trainings with SIGKILL, and compares what they end with."""

import os
import pathlib
import random
import signal
import subprocess
import sys
import tempfile
import time

import numpy as np

# Kills of one training.
EACH = 8
# Seconds after which a training counts as hanging.
TIMEOUT = 600


class Training:
    """The program `tools.endurance.training`, in a separate process.

    Args:
        folder: `pathlib.Path` of the backup.
        result: `pathlib.Path` of the result.
        *arguments: further arguments of `train`.
    """

    def __init__(self, folder, result, *arguments):
        self._log = tempfile.NamedTemporaryFile(suffix=".log")
        module = "tools.endurance.training"
        self._process = subprocess.Popen(
            [
                *(sys.executable, "-m", module),
                *map(str, (folder, result, *arguments)),
            ],
            stdout=self._log,
            stderr=subprocess.STDOUT,
        )

    def output(self):
        """Returns what it has printed, with its errors."""
        return pathlib.Path(self._log.name).read_text("utf-8")

    def wait(self):
        """Waits for its end; returns the exit status and what it printed."""
        return self._process.wait(TIMEOUT), self.output()

    def wait_until(self, holds, pause=0.01):
        """Waits until a condition holds, which it must before the end."""
        end = time.monotonic() + TIMEOUT
        while not holds():
            if self._process.poll() is not None or time.monotonic() > end:
                raise RuntimeError(f"the training ended:\n{self.output()}")
            time.sleep(pause)

    def stop(self, how):
        """Sends a signal; returns the exit status and what it printed."""
        os.kill(self._process.pid, how)
        return self.wait()


def kill_trainings(number, seed, start=Training):
    """Kills trainings until enough kills have hit, and compares the results.

    Every second kill has to hit while a checkpoint is being written; one that
    comes too late for that is not counted.

    Args:
        number: int. Of kills.
        seed: int. Of the random moments.
        start: function that starts a training, with the arguments and methods
            of `Training`. Default: in a new process.

    Returns:
        Dict of plain values: `kills`, `during_write`, `trainings`, `resumed`
        (starts that continued from a checkpoint), `arrays` that were compared,
        and `different`, the names of those that differ.
    """
    draw = random.Random(seed)
    report = {
        "kills": 0,
        "during_write": 0,
        "trainings": 0,
        "resumed": 0,
        "arrays": 0,
        "different": [],
    }
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        calm = folder / "calm.npz"
        _finish(start(folder / "calm", calm, 0, 0))
        while report["kills"] < number:
            again = folder / f"{report['trainings']}"
            result = folder / f"{report['trainings']}.npz"
            for _ in range(min(EACH, number - report["kills"])):
                _kill(start, again, result, draw, report)
                print(
                    f"{report['kills']}/{number} kills, "
                    f"{report['during_write']} during a write",
                    file=sys.stderr,
                    flush=True,
                )
            output = _finish(start(again, result))
            report["resumed"] += "resuming after" in output
            report["trainings"] += 1
            _compare(result, calm, report)
    return report


def _finish(training):
    status, output = training.wait()
    if status:
        raise RuntimeError(f"the training failed with {status}:\n{output}")
    return output


def _kill(start, folder, result, draw, report):
    """Kills a training once; tries again if it had to hit a write."""
    during_write = report["kills"] % 2 == 1
    while True:
        training = start(folder, result)
        first = not any(folder.glob("after-*"))
        if during_write:
            _wait_for_steps(training, 1)
            training.wait_until(lambda: list(folder.glob(".partial-*")), 0.0005)
        else:
            # A first checkpoint is written after step 4.
            _wait_for_steps(training, draw.randint(1, 5) + 4 * first)
            time.sleep(draw.uniform(0, 0.1))
        status, output = training.stop(signal.SIGKILL)
        if status != -signal.SIGKILL or result.exists():
            raise RuntimeError(f"the kill came too late:\n{output}")
        report["resumed"] += "resuming after" in output
        if not during_write or list(folder.glob(".partial-*")):
            report["kills"] += 1
            report["during_write"] += during_write
            return


def _wait_for_steps(training, count):
    training.wait_until(lambda: training.output().count("step ") >= count)


def _compare(result, calm, report):
    with np.load(result) as found, np.load(calm) as expected:
        names = sorted({*found.files, *expected.files})
        for name in names:
            equal = (
                name in found.files
                and name in expected.files
                and np.array_equal(found[name], expected[name])
            )
            if not equal:
                report["different"].append(f"{result.name}: {name}")
        report["arrays"] += len(names)


def problems(report):
    """Returns what is wrong with a report, a list of sentences."""
    found = []
    if report["different"]:
        found.append(
            "a killed training must end with the same arrays, and differed in "
            + ", ".join(report["different"])
        )
    if report["during_write"] < report["kills"] // 2:
        found.append(
            f"every second kill must hit a write, and {report['during_write']} "
            f"of {report['kills']} did"
        )
    return found
