"""The lines covered by each test, and the time of each test."""

import collections
import json
import os

from coverage import CoverageData


class TestCoverage:
    """The tests of a tree by the lines that they cover.

    Args:
        contexts: dict from the relative path of a module to a dict from a line
            to the ids of the tests that run it.
        seconds: dict from the id of a test to its time, including setup.
    """

    # pytest looks for tests in classes of this name.
    __test__ = False

    def __init__(self, contexts, seconds):
        self._contexts = contexts
        self._seconds = seconds

    @classmethod
    def read(cls, root, folder, backend):
        """Reads what `tools.run_tests --coverage` wrote for one backend.

        Args:
            root: `pathlib.Path` of the tree that was measured.
            folder: `pathlib.Path`.
            backend: str.

        Returns:
            `TestCoverage`.
        """
        contexts = collections.defaultdict(lambda: collections.defaultdict(set))
        for file in sorted(folder.glob(f"{backend}-*.coverage")):
            measured = CoverageData(str(file))
            measured.read()
            for name in measured.measured_files():
                path = os.path.relpath(name, root)
                for line, tests in measured.contexts_by_lineno(name).items():
                    # "tests/a.py::test_b|run"; empty at import time.
                    ids = {test.rpartition("|")[0] for test in tests if test}
                    contexts[path][line] |= ids
        seconds = {}
        for file in sorted(folder.glob(f"{backend}-*.json")):
            seconds |= json.loads(file.read_text(encoding="utf-8"))
        return cls(contexts, seconds)

    def tests_of(self, mutant):
        """Returns ids of the tests that cover a line of the mutant.

        The fastest come first. Lines that run at import time only, such as
        default arguments, belong to no test: all tests that cover the module
        are returned for them.
        """
        lines = self._contexts[mutant.path]
        chosen = set()
        for line in range(mutant.first_line, mutant.last_line + 1):
            chosen |= lines.get(line, set())
        if not chosen:
            chosen = set().union(*lines.values())
        return sorted(chosen, key=lambda test: (self._seconds[test], test))
