"""Runs the programs of `examples` as subprocesses."""

import os
import pathlib
import signal
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).parents[2]


def command(program, *arguments):
    """Returns the command that runs a program: `command("tag", "train")`."""
    path = ROOT / "examples" / f"{program}.py"
    return [sys.executable, str(path), *map(str, arguments)]


def run(program, *arguments, stdin="", status=0):
    """Runs a program to its end.

    Args:
        program: str. Name of its file, without `.py`.
        *arguments: its arguments.
        stdin: str. What it reads from standard input.
        status: int. The exit status that it must have.

    Returns:
        `subprocess.CompletedProcess` with texts `stdout` and `stderr`.
    """
    done = subprocess.run(
        command(program, *arguments),
        input=stdin,
        env=environment(),
        capture_output=True,
        text=True,
    )
    assert done.returncode == status, done.stdout + done.stderr
    return done


def kill_after_checkpoint(program, *arguments, signal=signal.SIGKILL):
    """Starts a training and stops it after its first checkpoint.

    Returns:
        The exit status, and what the program printed.
    """
    folder = pathlib.Path(arguments[arguments.index("--out") + 1])
    process = subprocess.Popen(
        command(program, *arguments),
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    end = time.monotonic() + 180
    while not list(folder.glob("backup/after-*")):
        assert process.poll() is None, process.stdout.read()
        assert time.monotonic() < end
        time.sleep(0.01)
    process.send_signal(signal)
    output, _ = process.communicate(timeout=180)
    return process.returncode, output


def environment():
    path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    return os.environ | {"PYTHONPATH": path}
