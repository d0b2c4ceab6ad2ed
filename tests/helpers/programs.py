"""Runs the programs of `examples`."""

import contextlib
import io
import json
import pathlib
import runpy
import signal
import sys
from typing import NamedTuple
from unittest import mock

import keras
import pytest

from tests.helpers.processes import Process

ROOT = pathlib.Path(__file__).parents[2]


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


def run_process(program, *arguments, stdin=""):
    """Runs a program to its end, in a new process.

    Args:
        program: str. Name of its file, without `.py`.
        *arguments: its arguments.
        stdin: str. What it reads from standard input.

    Returns:
        The exit status, and what the program printed.
    """
    return Process(_run_as_main, program, arguments, stdin).wait()


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
    running = Process(_run_as_main, program, arguments)
    running.wait_until(lambda: list(folder.glob("backup/after-*")))
    return running.stop(how)


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
