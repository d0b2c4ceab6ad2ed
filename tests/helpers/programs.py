"""Runs the programs of `examples`."""

import contextlib
import io
import json
import multiprocessing
import os
import pathlib
import runpy
import signal
import sys
import tempfile
import time
from typing import NamedTuple
from unittest import mock

import keras
import pytest

ROOT = pathlib.Path(__file__).parents[2]
# Forks new processes from one that has imported these, which takes ten seconds.
_PROCESSES = multiprocessing.get_context("forkserver")
_PROCESSES.set_forkserver_preload(
    [__name__, "keras", "matplotlib.figure", "tensorflow", "torch"]
)
# Seconds after which a program counts as hanging.
_TIMEOUT = 300


class Done(NamedTuple):
    """What a program printed."""

    stdout: str
    stderr: str


def run(program, *arguments, stdin="", status=0):
    """Runs a program to its end, in this process, which has imported Keras.

    Args:
        program: str. Name of its file, without `.py`.
        *arguments: its arguments.
        stdin: str. What it reads from standard input.
        status: int. The exit status that it must have.

    Returns:
        `Done`. An error message that the program exits with is part of
        `stderr`.
    """
    out, err = io.StringIO(), io.StringIO()
    # The names of layers are numbered as in a process of their own.
    keras.backend.clear_session()
    code = 0
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            _run_as_main(program, arguments, stdin)
        except SystemExit as leaving:
            code = leaving.code or 0
            if isinstance(code, str):  # As Python does.
                err.write(f"{code}\n")
                code = 1
    assert code == status, out.getvalue() + err.getvalue()
    return Done(out.getvalue(), err.getvalue())


def _run_as_main(program, arguments, stdin=""):
    path = str(ROOT / "examples" / f"{program}.py")
    with (
        mock.patch.object(sys, "argv", [path, *map(str, arguments)]),
        mock.patch.object(sys, "stdin", io.StringIO(stdin)),
    ):
        runpy.run_path(path, run_name="__main__")


class _Process:
    """A program that runs in a new process.

    Args:
        program: str. Name of its file, without `.py`.
        arguments: its arguments.
        stdin: str. What it reads from standard input.
    """

    def __init__(self, program, arguments, stdin=""):
        self._log = tempfile.NamedTemporaryFile(suffix=".log")
        self.process = _PROCESSES.Process(
            target=_run_with_log,
            args=(self._log.name, program, arguments, stdin),
        )
        self.process.start()

    def output(self):
        """Returns what it has printed, with its errors."""
        return pathlib.Path(self._log.name).read_text("utf-8")

    def wait(self):
        """Waits for its end; returns the exit status and what it printed."""
        self.process.join(_TIMEOUT)
        if self.process.exitcode is None:
            self.process.kill()
            raise TimeoutError(self.output())
        return self.process.exitcode, self.output()


def _run_with_log(log, program, arguments, stdin):
    file = os.open(log, os.O_WRONLY | os.O_APPEND)
    os.dup2(file, 1)
    os.dup2(file, 2)
    _run_as_main(program, arguments, stdin)


def run_process(program, *arguments, stdin=""):
    """Runs a program to its end, in a new process.

    Args:
        program: str. Name of its file, without `.py`.
        *arguments: its arguments.
        stdin: str. What it reads from standard input.

    Returns:
        The exit status, and what the program printed.
    """
    return _Process(program, arguments, stdin).wait()


def stop_after_checkpoint(program, *arguments, how=signal.SIGKILL):
    """Starts a training as a process, stops it after its first checkpoint.

    Args:
        program: str. Name of its file, without `.py`.
        *arguments: its arguments, with `--out`.
        how: signal.

    Returns:
        The exit status, and what the program printed.
    """
    folder = pathlib.Path(arguments[arguments.index("--out") + 1])
    running = _Process(program, arguments)
    end = time.monotonic() + _TIMEOUT
    while not list(folder.glob("backup/after-*")):
        assert running.process.is_alive(), running.output()
        assert time.monotonic() < end, running.output()
        time.sleep(0.01)
    os.kill(running.process.pid, how)
    return running.wait()


def stop_and_resume(program, *options, changed, message):
    """Kills a training after its first checkpoint, and resumes it.

    Without `--resume`, and with other options, the program must refuse.

    Args:
        program: str. Name of its file, without `.py`.
        *options: its arguments, with `--out`.
        changed: tuple. Options with which it must not resume.
        message: str. What it prints then.
    """
    status, _ = stop_after_checkpoint(program, *options)
    assert status == -signal.SIGKILL
    refused = run(program, *options, status=1)
    assert "continue it with --resume" in refused.stderr
    refused = run(program, *options, "--resume", *changed, status=1)
    assert message in refused.stderr
    run(program, *options, "--resume")


def results(out):
    """Returns the content of `results.json`."""
    return json.loads((out / "results.json").read_text("utf-8"))


def assert_equal_results(out, expected, *names):
    """Compares values in the results of two folders."""
    found, expected = results(out), results(expected)
    for name in names:
        assert found[name] == pytest.approx(expected[name], rel=1e-4)
