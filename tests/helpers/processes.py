"""Runs a function in another process, and reads what it prints."""

import multiprocessing
import os
import pathlib
import tempfile
import time

import keras

from tests.helpers import jax_cache

# `make test` has started the server that forks new processes. In other runs, it
# imports these once, which takes seconds. The first one hides the other
# backends: Keras imports TensorFlow to set a random seed on any backend, and
# that takes longer than most of the tests.
_PROCESSES = multiprocessing.get_context("forkserver")
_PROCESSES.set_forkserver_preload(
    [
        "tests.helpers.one_backend",
        __name__,
        "keras",
        "keras_attn.models",
        "keras_attn.text",
        "keras_attn.training",
        "matplotlib.figure",
    ]
)
# Seconds after which a process counts as hanging.
_TIMEOUT = 600


class Process:
    """A function that runs in another process.

    Args:
        function: of a module that the process can import.
        *arguments: its arguments, picklable.
    """

    def __init__(self, function, *arguments):
        self._log = tempfile.NamedTemporaryFile(suffix=".log")
        self._process = _PROCESSES.Process(
            target=_run_with_log, args=(self._log.name, function, arguments)
        )
        self._process.start()

    def output(self):
        """Returns what it has printed, with its errors."""
        return pathlib.Path(self._log.name).read_text("utf-8")

    def wait(self):
        """Waits for its end; returns the exit status and what it printed."""
        self._process.join(_TIMEOUT)
        if self._process.exitcode is None:
            self._process.kill()
            raise TimeoutError(self.output())
        return self._process.exitcode, self.output()

    def wait_until(self, holds, pause=0.01):
        """Waits until a condition holds, which it must before the end.

        Args:
            holds: function without arguments that returns a bool.
            pause: float. Seconds between two calls of it.
        """
        end = time.monotonic() + _TIMEOUT
        while not holds():
            assert self._process.is_alive(), self.output()
            assert time.monotonic() < end, self.output()
            time.sleep(pause)

    def stop(self, how):
        """Sends a signal; returns the exit status and what it printed."""
        os.kill(self._process.pid, how)
        return self.wait()


def _run_with_log(log, function, arguments):
    file = os.open(log, os.O_WRONLY | os.O_APPEND)
    os.dup2(file, 1)
    os.dup2(file, 2)
    if keras.backend.backend() == "jax":
        jax_cache.share()
    function(*arguments)
