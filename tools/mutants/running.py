"""Runs the tests that cover a mutant until one of them fails."""

import dataclasses
import os
import pathlib
import shutil
import signal
import subprocess
import time

from tools.forked_pytest import fork_pytest, warm_up
from tools.mutants.drawing import mutate

# The first run for a mutant has this many tests. Most mutants need no other,
# and pytest then collects few files.
FIRST = 40
# pytest's status if all tests pass. Any other status kills the mutant: a module
# that cannot be imported stops the collection or removes test ids.
SURVIVED = 0


@dataclasses.dataclass(frozen=True)
class Outcome:
    """Result of running the tests on a mutant.

    Attributes:
        mutant: `Mutant`.
        result: "killed", "survived" or "timeout" (which counts as killed).
        seconds: float. How long its tests ran.
        tests: int. How many tests run its lines.
        by: str. The test that failed; empty where none did.
    """

    mutant: object
    result: str
    seconds: float
    tests: int
    by: str = ""


def run_mutants(
    mutants, coverage, root, folder, workers=2, limit=300, killers=()
):
    """Runs all mutants, several at a time, each in its own copy of the tree.

    Args:
        mutants: list of `Mutant`.
        coverage: `TestCoverage` of the tree.
        root: `pathlib.Path` of the checkout they were drawn from.
        folder: `pathlib.Path`. For the copies and the logs.
        workers: int. Mutants that run at the same time.
        limit: float. Seconds after which a mutant counts as killed.
        killers: ids of tests that are likely to fail, and are tried first.

    Yields:
        `Outcome` of each mutant, in the order in which they end.

    Raises:
        RuntimeError: tests fail without any mutant.
    """
    copies = [_copy(root, folder / f"tree-{n}") for n in range(workers)]
    warm_up()
    _check_unmutated(mutants, coverage, copies[0], folder)
    waiting, running = list(reversed(mutants)), {}
    while waiting or running:
        while waiting and copies:
            mutant = waiting.pop()
            tests = coverage.tests_of(mutant)
            tests.sort(key=lambda test: test not in killers)
            if not tests:
                yield Outcome(mutant, "survived", 0.0, 0)
                continue
            run = _Run(mutant, tests, root, copies.pop(), folder, limit)
            running[run.process] = run
        if not running:
            break
        process, status = os.waitpid(-1, os.WNOHANG)
        if not process:
            for run in running.values():
                run.stop_if_late()
            time.sleep(0.2)
            continue
        run = running.pop(process)
        outcome = run.ended(status)
        if outcome is None:
            running[run.process] = run
        else:
            copies.append(run.tree)
            yield outcome


class _Run:
    """A mutant whose tests are running."""

    def __init__(self, mutant, tests, root, tree, folder, limit):
        self.tree = tree
        self._mutant, self._root, self._tests = mutant, root, len(tests)
        parts = [tests[:FIRST], tests[FIRST:]]
        self._parts = [part for part in parts if part]
        self._log = folder / f"{tree.name}.log"
        self._started = time.monotonic()
        self._limit, self._late = limit, False
        (tree / mutant.path).write_text(mutate(mutant, root), encoding="utf-8")
        self.start()

    def start(self):
        """Starts the next part of the tests."""
        self.process = _fork(self.tree, self._parts.pop(0), self._log)

    def stop_if_late(self):
        """Kills the tests after the time limit."""
        if time.monotonic() - self._started > self._limit and not self._late:
            self._late = True
            os.killpg(self.process, signal.SIGKILL)

    def ended(self, status):
        """Starts the next part, or returns the `Outcome`."""
        status = os.waitstatus_to_exitcode(status)
        if status == SURVIVED and self._parts:
            self.start()
            return None
        result = "timeout" if self._late else "killed"
        if status == SURVIVED:
            result = "survived"
        source = (self._root / self._mutant.path).read_text(encoding="utf-8")
        (self.tree / self._mutant.path).write_text(source, encoding="utf-8")
        return Outcome(
            self._mutant,
            result,
            round(time.monotonic() - self._started, 1),
            self._tests,
            self._failed() if result == "killed" else "",
        )

    def _failed(self):
        for line in self._log.read_text(encoding="utf-8").splitlines():
            if line.startswith(("FAILED ", "ERROR ")):
                return line.split(" ", 1)[1].split(" - ")[0]
        return "the import"


def _fork(tree, tests, log):
    """Runs tests in a fork, in the given order, until one fails."""
    return fork_pytest(
        ["-x", "-q", "--tb=line", "-p", "no:cacheprovider", *tests],
        log,
        tree=tree,
        plugins=[_Order(tests)],
        environment={"PYTHONPATH": str(tree)},
    )


class _Order:
    """Plugin: runs the tests in the order of their ids."""

    def __init__(self, tests):
        self._index = {test: index for index, test in enumerate(tests)}

    def pytest_collection_modifyitems(self, items):
        items.sort(key=lambda item: self._index.get(item.nodeid, 0))


def _check_unmutated(mutants, coverage, tree, folder):
    tests = {test for m in mutants for test in coverage.tests_of(m)[:5]}
    log = folder / "unmutated.log"
    process = _fork(tree, sorted(tests), log)
    status = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
    if status != SURVIVED:
        raise RuntimeError(f"tests fail without any mutant, see {log}")


def _copy(root, folder):
    """Copies the tracked files."""
    shutil.rmtree(folder, ignore_errors=True)
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=root, capture_output=True, check=True
    ).stdout.decode()
    for name in filter(None, listed.split("\0")):
        if (root / name).is_file():
            target = pathlib.Path(folder) / name
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(root / name, target)
    return pathlib.Path(folder)
