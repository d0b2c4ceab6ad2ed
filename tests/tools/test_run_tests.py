"""The runner of `make test` runs every test once and reports failures."""

import argparse
import importlib.util
import json
import os
import pathlib
import subprocess
import sys

import keras
import pytest

from tools import run_tests

pytestmark = pytest.mark.one_backend

ROOT = pathlib.Path(__file__).parents[2]
BACKEND = keras.backend.backend()
GOOD = "def test_good():\n    pass\n"
BAD = "def test_bad():\n    assert 1 == 2, 'this is wrong'\n"

# Ctrl-C raises in a test as it does in any program.
INTERRUPTED = """
import signal, pytest

def test_interrupted():
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)
"""


OTHERS = sorted({"jax", "tensorflow", "torch"} - {BACKEND})
# Writes the names of the other backends it could import.
FIND_OTHERS = f"""
import importlib.util, json, pathlib

def test_others():
    found = [name for name in {OTHERS} if importlib.util.find_spec(name)]
    path = pathlib.Path(__file__).with_name("found.json")
    path.write_text(json.dumps(found))
"""


def run(folder, *options, backend=BACKEND, shard="1/1", **environment):
    """Runs a folder of tests as `make test` would."""
    return subprocess.run(
        [
            *(sys.executable, "-m", "tools.run_tests"),
            *("--backends", *backend.split(), "--shard", shard, "--tests"),
            " ".join([os.path.relpath(folder, ROOT), *options]),
        ],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
        capture_output=True,
        text=True,
    )


@pytest.fixture
def folder(tmp_path):
    """A folder of tests outside this project."""
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    return tmp_path


def test_passed_tests_are_counted_per_file(folder):
    (folder / "test_one.py").write_text(GOOD)
    (folder / "test_two.py").write_text(GOOD + FIND_OTHERS)
    (folder / "test_three.py").write_text(INTERRUPTED)
    result = run(folder, ALONE="1")
    assert result.returncode == 0, result.stdout + result.stderr
    lines = result.stdout.splitlines()
    assert lines[-1] == "4 passed, 0 failed, 0 skipped"
    slowest = lines[lines.index("The 20 slowest files:") + 1 :]
    assert sum("test_one.py" in line for line in slowest) == 1
    assert sum("test_two.py" in line for line in slowest) == 1
    assert json.loads((folder / "found.json").read_text()) == []


def test_a_part_without_tests_does_not_fail(folder):
    (folder / "test_none.py").write_text(GOOD)
    result = run(folder, "--deselect=test_none.py::test_good")
    assert result.returncode == 0, result.stdout + result.stderr
    assert result.stdout.splitlines()[-1] == "0 passed, 0 failed, 0 skipped"


def test_failures_are_shown_and_set_the_exit_status(folder):
    (folder / "test_one.py").write_text(GOOD + BAD + FIND_OTHERS)
    result = run(folder, ALONE="0")
    assert result.returncode == 1
    assert "this is wrong" in result.stdout
    assert f"tests failed on {BACKEND}" in result.stderr
    assert result.stdout.splitlines()[-1] == "2 passed, 1 failed, 0 skipped"
    installed = [name for name in OTHERS if importlib.util.find_spec(name)]
    assert json.loads((folder / "found.json").read_text()) == installed


def test_backends_that_run_alone_know_of_no_others(folder):
    (folder / "test_one.py").write_text(
        "from os import environ\n\ndef test_alone():\n"
        "    assert environ['TEST_BACKENDS'] == environ['KERAS_BACKEND']\n"
        "    assert environ['ALONE_SHARE'] in ('1/2', '2/2')\n"
    )
    backends = f"{OTHERS[0]} {BACKEND}"
    result = run(folder, backend=backends, ALONE="1")
    assert result.returncode == 0, result.stdout + result.stderr
    assert result.stdout.splitlines()[-1] == "2 passed, 0 failed, 0 skipped"
    result = run(folder, backend=backends, ALONE="0")
    assert f"'{backends}'" in result.stdout


def test_a_process_that_dies_fails_the_run(folder):
    (folder / "test_one.py").write_text(
        "import os\n\ndef test_dies():\n    os._exit(7)\n"
    )
    result = run(folder)
    assert result.returncode == 1
    assert f"tests failed on {BACKEND}" in result.stderr


def test_a_backend_that_cannot_be_imported_fails_the_run(folder):
    (folder / "more").mkdir()
    for name in ("test_one.py", "more/test_two.py"):
        (folder / name).write_text(GOOD)
    result = run(folder, backend="nonsense")
    assert result.returncode == 1, result.stdout
    assert "tests failed on nonsense" in result.stderr


def test_unknown_path_is_an_error(folder):
    result = run(folder / "nowhere")
    assert result.returncode == 1
    assert "TESTS must name tests. Received: " in result.stderr


def test_parts_contain_every_file_once():
    files = run_tests.find_tests(["tests"])
    assert f"tests/tools/{pathlib.Path(__file__).name}" in files
    parts = run_tests.parts_of(files)
    assert sorted(file for _, some in parts for file in some) == files
    assert len({name for name, _ in parts}) == len(parts)
    assert parts[0][0] == "tests/site"
    for _, some in parts:
        assert len({os.path.dirname(file) for file in some}) == 1


def test_few_files_are_spread_over_the_workers():
    files = run_tests.find_tests(["tests/test_*.py"])
    parts = run_tests.parts_of(files, workers=2)
    assert len(parts) == 4
    assert sorted(file for _, some in parts for file in some) == files
    assert run_tests.parts_of(files[:1], workers=2) == [("tests", files[:1])]


def test_folders_files_patterns_and_single_tests_are_found():
    here = "tests/tools/test_run_tests.py"
    assert run_tests.find_tests([here, "tests/tools/"]).count(here) == 1
    assert here in run_tests.find_tests(["tests/t*ls"])
    one = f"{here}::test_parts_contain_every_file_once"
    assert run_tests.find_tests([one]) == [one]


def test_summary_has_totals_and_slowest_files():
    parts = [
        run_tests.Part(
            backend,
            "tests/a",
            seconds=1.0,
            files={f"tests/a/test_{number}.py": number for number in range(30)},
            outcomes={"passed": 2, "skipped": 1},
        )
        for backend in ("jax", "torch")
    ]
    lines = run_tests.summary(parts, 7.0).splitlines()
    assert lines[-1] == "4 passed, 0 failed, 2 skipped"
    assert lines[2].split() == ["tests/a", "435", "435"]
    first = lines.index("The 20 slowest files:") + 1
    slowest = lines[first : first + 20]
    assert [line.split()[0] for line in slowest[:3]] == ["29.0", "29.0", "28.0"]
    assert not lines[first + 20]


def test_shards_have_every_part_once(tmp_path):
    files = run_tests.find_tests(["tests/layers", "tests/ops", "tests/text"])
    parts = run_tests.parts_of(files, 2)
    shards = [parts[number::3] for number in range(3)]
    assert sorted(part for some in shards for part in some) == sorted(parts)
    assert run_tests.shard("2/4") == (2, 4)


@pytest.mark.parametrize("text", ["0/4", "5/4", "1", "a/b", "1/0", "-1/2"])
def test_a_wrong_shard_is_refused(text):
    with pytest.raises(argparse.ArgumentTypeError, match="SHARD must be"):
        run_tests.shard(text)


def test_a_shard_runs_its_parts_only(folder):
    for name in ("a", "b"):
        (folder / name).mkdir()
        (folder / name / "test_it.py").write_text(GOOD)
    result = run(folder, shard="2/2")
    assert result.returncode == 0, result.stdout + result.stderr
    assert "1 passed, 0 failed" in result.stdout
