"""Contestants in forks of one process that has imported their backend.

Importing a backend takes longer than the steps of a quick run. Their times are
not comparable with those of separate processes.
"""

import contextlib
import importlib
import json
import os
import select
import signal
import sys
import tempfile
import traceback

from benchmarks.harness import race, worker

# What most contestants import. transformers loads its models lazily.
WARM = (
    "keras",
    "keras_attn",
    "torch",
    "transformers.models.gpt2.modeling_gpt2",
    "transformers.models.marian.modeling_marian",
)
# A contestant that takes longer is stuck: tiny sizes compile in seconds.
PATIENCE = 300


def warm_up():
    """Imports what contestants need, without computing anything.

    The threads of a backend that has computed something would be missing in a
    fork.
    """
    for name in WARM:
        try:
            importlib.import_module(name)
        except ModuleNotFoundError as error:
            # Contestants that need it are skipped.
            if error.name != name.partition(".")[0]:
                raise


class ForkedRunner(race.Runner):
    """A contestant in a fork of this process.

    Args:
        contestant: `Contestant` of the backend of this process.
        case: dict. The sizes, passed to the contestant's `prepare`.
        patience: float. Seconds to wait for an answer.
    """

    def __init__(self, contestant, case, patience=PATIENCE):
        self.contestant, self._patience = contestant, patience
        self._errors = tempfile.TemporaryFile("w+")
        requests, to_requests = os.pipe()
        from_answers, answers = os.pipe()
        sys.stdout.flush()
        sys.stderr.flush()
        self._process = os.fork()
        if not self._process:
            self._serve(case, requests, answers)
        os.close(requests)
        os.close(answers)
        self._requests = os.fdopen(to_requests, "w")
        self._answers = os.fdopen(from_answers)

    def close(self):
        """Ends the process."""
        if self._process is not None:
            # Forks started later have inherited the other end of its input.
            os.kill(self._process, signal.SIGKILL)
            self._wait()
        # Its last request may not have been read.
        with contextlib.suppress(BrokenPipeError):
            self._requests.close()
        self._answers.close()
        self._errors.close()

    def _serve(self, case, requests, answers):
        """Serves the requests in the fork, and ends it."""
        status = 1
        try:
            os.dup2(self._errors.fileno(), 1)
            os.dup2(self._errors.fileno(), 2)
            # Those of the parent may write elsewhere.
            sys.stdout = sys.stderr = open(2, "w", closefd=False)
            one = self.contestant
            with os.fdopen(requests) as lines, os.fdopen(answers, "w") as out:
                worker.serve(one.module, case, one.options or {}, lines, out)
            status = 0
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            # Without the exit handlers of the parent.
            os._exit(status)

    def _send(self, **request):
        # If the process has ended, the missing answer raises its error.
        with contextlib.suppress(BrokenPipeError):
            print(json.dumps(request), file=self._requests, flush=True)

    def _answer(self):
        ready, _, _ = select.select([self._answers], [], [], self._patience)
        if not ready:
            os.kill(self._process, signal.SIGKILL)
            self._wait()
            raise RuntimeError(
                f"The contestant {self.contestant.name} did not answer within "
                f"{self._patience} seconds"
            )
        line = self._answers.readline()
        if line:
            return json.loads(line)
        raise self._ended(self._wait())

    def _wait(self):
        _, status = os.waitpid(self._process, 0)
        self._process = None
        return os.waitstatus_to_exitcode(status)
