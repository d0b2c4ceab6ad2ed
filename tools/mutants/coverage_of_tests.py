"""Which tests run which lines, and how long each test takes."""

import collections
import os
import subprocess
import sys

from coverage import CoverageData

# The time of a test that pytest leaves out of its list of durations, in
# seconds: it lists those from 0.005 s on.
UNLISTED = 0.004


class TestCoverage:
    """The tests of a tree by the lines that they run.

    Args:
        contexts: dict from the relative path of a module to a dict from a line
            to the ids of the tests that run it.
        seconds: dict from the id of a test to its time, set-up included.
    """

    # pytest looks for tests in classes of this name.
    __test__ = False

    def __init__(self, contexts, seconds):
        self._contexts = contexts
        self._seconds = seconds

    @classmethod
    def read(cls, root, data, logs):
        """Reads what `measure` wrote.

        Args:
            root: `pathlib.Path` of the tree that was measured.
            data: list of `pathlib.Path`, of coverage.py's data files.
            logs: list of `pathlib.Path`, of what pytest printed.

        Returns:
            `TestCoverage`.
        """
        contexts = collections.defaultdict(lambda: collections.defaultdict(set))
        for file in data:
            measured = CoverageData(str(file))
            measured.read()
            for name in measured.measured_files():
                path = os.path.relpath(name, root)
                for line, tests in measured.contexts_by_lineno(name).items():
                    # "tests/a.py::test_b|run"; empty at import time.
                    ids = {test.rpartition("|")[0] for test in tests if test}
                    contexts[path][line] |= ids
        seconds = collections.defaultdict(float)
        for file in logs:
            for line in file.read_text(encoding="utf-8").splitlines():
                time, _, rest = line.strip().partition("s ")
                phase, _, test = rest.strip().partition(" ")
                if phase in ("setup", "call", "teardown"):
                    seconds[test.strip()] += float(time)
        return cls(contexts, seconds)

    def tests_of(self, mutant):
        """Ids of the tests that run a line of the mutant, fastest first.

        Lines that run only while a module is imported, such as the default of
        an argument, belong to no test: for these, the tests of the whole module
        count.
        """
        lines = self._contexts[mutant.path]
        chosen = set()
        for line in range(mutant.first_line, mutant.last_line + 1):
            chosen |= lines.get(line, set())
        if not chosen:
            chosen = set().union(*lines.values())
        return sorted(chosen, key=lambda test: (self.seconds(test), test))

    def seconds(self, test):
        """Time of a test."""
        return self._seconds.get(test, UNLISTED)


def measure(root, parts, folder, workers=2):
    """Runs all tests of a tree and records which test runs which line.

    Args:
        root: `pathlib.Path` of a checkout.
        parts: list of lists of paths of tests. Each is a run of its own.
        folder: `pathlib.Path`. For the data and the logs.
        workers: int. Processes that share the tests.

    Returns:
        `TestCoverage`.

    Raises:
        RuntimeError: a test failed.
    """
    folder.mkdir(parents=True, exist_ok=True)
    data, logs = [], []
    for number, part in enumerate(parts):
        data.append(folder / f"coverage-{number}")
        logs.append(folder / f"log-{number}.txt")
        command = [
            sys.executable,
            *("-m", "pytest", *part, "-q", "--durations=0"),
            *("--cov=keras_attn", "--cov-branch", "--cov-context=test"),
            *("--cov-report=", f"--numprocesses={workers}", "--dist=loadfile"),
        ]
        print(f"Running {' '.join(part)} under coverage ...", flush=True)
        with logs[-1].open("w", encoding="utf-8") as log:
            status = subprocess.run(
                command,
                cwd=root,
                env={
                    **os.environ,
                    "COVERAGE_FILE": str(data[-1]),
                    "PYTHONPATH": str(root),
                },
                stdout=log,
                stderr=subprocess.STDOUT,
            ).returncode
        if status:
            raise RuntimeError(f"tests failed, see {logs[-1]}")
    return TestCoverage.read(root, data, logs)
