"""Drawing, applying and running mutants."""

import dataclasses
import json
import os
import pathlib
import subprocess
import sys

import pytest

pytestmark = pytest.mark.one_backend

from coverage import CoverageData

from tools.mutants import drawing
from tools.mutants.coverage_of_tests import TestCoverage, lines_in_functions

ROOT = pathlib.Path(__file__).parents[2]
SOURCE = """\
def double(x):
    return x + x


def unused(x):
    return x - 1
"""
TESTS = """
import keras_attn.ops

def test_fast():
    keras_attn.ops.double(1)

def test_double():
    assert keras_attn.ops.double(3) == 6
"""


@pytest.fixture
def tree(tmp_path):
    """A checkout with two functions, one of which is tested."""
    for name, content in {
        "keras_attn/__init__.py": "",
        "keras_attn/ops.py": SOURCE,
        "tests/test_ops.py": TESTS,
        "pytest.ini": "[pytest]\npythonpath = .\n",
    }.items():
        path = tmp_path / "tree" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    subprocess.run(["git", "init", "-q"], cwd=tmp_path / "tree", check=True)
    subprocess.run(["git", "add", "."], cwd=tmp_path / "tree", check=True)
    return tmp_path / "tree"


def test_draw_is_deterministic(tree):
    every = drawing.list_mutants(tree)
    assert {mutant.path for mutant in every} == {"keras_attn/ops.py"}
    assert {mutant.first_line for mutant in every} == {2, 6}
    drawn = drawing.draw(tree, 5, seed=1)
    assert drawn == drawing.draw(tree, 5, seed=1)
    assert drawn != drawing.draw(tree, 5, seed=2)
    assert set(drawn) <= set(every) and len(set(drawn)) == 5
    with pytest.raises(ValueError, match="`number` must be from 1 to"):
        drawing.draw(tree, len(every) + 1, seed=0)


def test_mutant_changes_only_its_lines(tree):
    for mutant in drawing.list_mutants(tree):
        mutated = drawing.mutate(mutant, tree).splitlines()
        lines = SOURCE.splitlines()
        differ = [
            number
            for number, (old, new) in enumerate(
                zip(lines, mutated, strict=True)
            )
            if old != new
        ]
        assert differ == [mutant.first_line - 1]
    (tree / "keras_attn/ops.py").write_text("")
    with pytest.raises(ValueError, match="`mutant` must exist in"):
        drawing.mutate(mutant, tree)


def test_mutants_are_killed_or_survive(tree, tmp_path):
    ids = ["tests/test_ops.py::test_fast", "tests/test_ops.py::test_double"]
    recorded = tmp_path / "coverage"
    recorded.mkdir()
    data = CoverageData(str(recorded / "torch-0.coverage"))
    for test in ids:
        data.set_context(f"{test}|run")
        data.add_lines({str(tree / "keras_attn" / "ops.py"): [2]})
    data.write()
    seconds = {ids[0]: 0.1, ids[1]: 0.2}
    (recorded / "torch-0.json").write_text(json.dumps(seconds))
    mutants = [
        mutant
        for mutant in drawing.list_mutants(tree)
        if mutant.operator.endswith(("_Add_Sub", "_Sub_Add"))
    ]
    # For a line without coverage, all tests of its module run.
    coverage = TestCoverage.read(tree, recorded, "torch")
    assert [coverage.tests_of(mutant) for mutant in mutants] == [ids, ids]
    drawn = tmp_path / "drawn.json"
    listed = [dataclasses.asdict(mutant) for mutant in mutants]
    drawn.write_text(json.dumps({"mutants": listed}))
    result = subprocess.run(
        [
            *(sys.executable, "-m", "tools.mutants", "--workers", "1"),
            *("--mutants", str(drawn), "--tree", str(tree)),
            *("--coverage", str(recorded), "--out", str(tmp_path / "out")),
        ],
        cwd=ROOT,
        env={**os.environ, "KERAS_BACKEND": "torch", "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )
    assert result.returncode == 0, result.stderr
    assert "1 killed, 1 survived" in result.stdout
    report = json.loads((tmp_path / "out" / "report.json").read_text())
    killed, survived = report["results"]
    assert (killed["result"], killed["by"]) == ("killed", ids[1])
    assert (survived["result"], survived["tests"]) == ("survived", 2)
    copy = tmp_path / "out" / "tree-0" / "keras_attn" / "ops.py"
    assert copy.read_text() == SOURCE


def test_defaults_and_decorators_run_at_import_time():
    source = "@f\ndef g(\n    x=1,\n):\n    y = 2\n    return y\nz = 3\n"
    assert lines_in_functions(source) == {5, 6}
