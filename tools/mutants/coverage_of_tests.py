"""The lines covered by each test, and the time of each test."""

import ast
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
        in_functions: dict from the relative path of a module to the set of its
            lines that are in the body of a function.
    """

    # pytest looks for tests in classes of this name.
    __test__ = False

    def __init__(self, contexts, seconds, in_functions):
        self._contexts = contexts
        self._seconds = seconds
        self._in_functions = in_functions

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
        in_functions = {
            path: lines_in_functions((root / path).read_text(encoding="utf-8"))
            for path in contexts
        }
        return cls(contexts, seconds, in_functions)

    def tests_of(self, mutant):
        """Returns ids of the tests that cover a line of the mutant.

        The fastest come first. Lines that run at import time, such as default
        arguments, and lines without coverage belong to no test: all tests that
        cover the module are returned for them.
        """
        lines = self._contexts[mutant.path]
        mutated = range(mutant.first_line, mutant.last_line + 1)
        chosen = set()
        if not self._in_functions[mutant.path].isdisjoint(mutated):
            chosen = chosen.union(*(lines.get(line, ()) for line in mutated))
        if not chosen:
            chosen = chosen.union(*lines.values())
        return sorted(chosen, key=lambda test: (self._seconds[test], test))


def lines_in_functions(source):
    """Returns the lines of a module that run when a function is called.

    Args:
        source: str. The text of the module.

    Returns:
        Set of int. Signatures, decorators, class bodies and statements of the
        module are not among them: they run at import time.
    """
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            for statement in node.body:
                found |= set(range(statement.lineno, statement.end_lineno + 1))
    return found
