"""`make matrix`: what it installs and runs, and its page."""

import json
import pathlib
import tomllib

import pytest

from tools.matrix import __main__ as command
from tools.matrix import environments
from tools.matrix.page import page

pytestmark = pytest.mark.one_backend

PROJECT = tomllib.loads((environments.ROOT / "pyproject.toml").read_text())
# Extras of those who work on the library: the tests of CI use them.
INTERNAL = {"mutants", "release", "types"}


def result(**values):
    return {
        **{"outcome": "passed", "output": "", "seconds": 71},
        **{"megabytes": 1234, "versions": {"keras": "3.15.1"}},
        **{"date": "2026-01-02", "machine": "a computer"},
    } | values


def test_every_extra_has_a_row():
    extras = set(PROJECT["project"]["optional-dependencies"]) - INTERNAL
    assert extras - set(environments.BACKENDS) == {*environments.EXTRAS} - {
        "no extra"
    }


def test_the_oldest_versions_are_the_lower_bounds():
    project = PROJECT["project"]
    extras = project["optional-dependencies"]
    bounds = [*project["dependencies"]]
    bounds += [extras[name][0] for name in environments.BACKENDS]
    for bound in bounds:
        name, least = bound.split(">=")
        oldest = environments.VERSIONS["oldest versions"][name]
        assert oldest.split(".")[:2] == least.split(".")


def test_an_environment_has_one_backend(tmp_path):
    *_, last = environments.install("text", "jax", tmp_path)
    assert last == ".[jax,text]"
    *_, last = environments.install("no extra", "torch", tmp_path)
    assert last == ".[torch]"
    found = environments.install("oldest versions", "jax", tmp_path)
    assert found[-1] == ".[jax,test]"
    pinned = pathlib.Path(found[found.index("-c") + 1]).read_text()
    assert "jax==0.10.0" in pinned.splitlines()


def test_programs_are_run_outside_the_source(tmp_path, monkeypatch):
    """A failure ends an environment, and its output is kept."""
    calls = []

    class Done:
        def __init__(self, command):
            self.returncode = int(environments.TEXT in command)
            self.stdout = "keras==3.15.1\nabsent @ file\n" + 5000 * "x"

        def check_returncode(self):
            assert self.returncode == 0

    def run(command, cwd, **kwargs):
        calls.append(([*map(str, command)], cwd, kwargs["env"]))
        return Done(command)

    monkeypatch.setattr(environments.subprocess, "run", run)
    monkeypatch.setattr(environments, "copied", lambda folder: folder)
    monkeypatch.setenv("PYTHONPATH", "elsewhere")
    found = environments.run("all", "jax")
    assert found["outcome"] == "failed" and len(found["output"]) == 4000
    assert found["versions"] == {"keras": "3.15.1"}
    (_, made, _), (install, tree, _), (program, folder, variables), _ = calls
    assert install[1:4] == ["-m", "pip", "install"]
    assert tree.name == "keras-attn" and folder == made
    assert program[1:] == ["-c", environments.TEXT]
    assert variables["KERAS_BACKEND"] == "jax"
    assert "PYTHONPATH" not in variables


def test_a_copy_has_all_sources(tmp_path):
    copy = environments.copied(tmp_path / "copy")
    for name in ("pyproject.toml", "tools/site/check.py", "tests/site"):
        assert (copy / name).exists()
    assert not (copy / ".git").exists()
    assert not list(copy.rglob("__pycache__"))


def test_what_has_passed_is_kept(tmp_path, monkeypatch, capsys):
    path = tmp_path / "installation.json"
    options = ["--only", "text", "docs", "--backends", "jax", "torch"]
    options += ["--results", str(path)]
    calls = []

    def run(row, backend):
        calls.append(f"{row}, {backend}")
        bad = calls[-1] == "docs, jax" and len(calls) < 5
        return result(outcome="failed" if bad else "passed", output="why")

    monkeypatch.setattr(command, "run", run)
    assert command.main(options) == 1
    assert len(calls) == 4
    assert "why" in capsys.readouterr().err
    assert "**failed**" in path.with_suffix(".md").read_text()
    assert command.main(options) == 0
    assert calls[4:] == ["docs, jax"]
    assert len(json.loads(path.read_text())) == 4
    assert command.main([*options, "--again"]) == 0
    assert len(calls) == 9


def test_the_page_has_all_rows():
    found = {
        "text, jax": result(),
        "docs, torch": result(outcome="failed", date="2026-01-04"),
        "oldest versions, jax": result(),
    }
    text = page(found)
    assert "2026-01-02 to 2026-01-04, a computer." in text
    assert "| `text` | not run | 1,234 MB, 71 s | not run |" in text
    assert "| `docs` | not run | not run | **failed** |" in text
    assert "| oldest versions | not run | passed: keras 3.15.1 |" in text
    assert "| 3.13 | not run here |" in text
