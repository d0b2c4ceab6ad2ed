"""The workflows and forms of GitHub: valid, and up to date with the project."""

import os
import pathlib
import re
import shutil
import subprocess
import tomllib

import pytest
import yaml

ROOT = pathlib.Path(__file__).parents[2]
GITHUB = ROOT / ".github"
WORKFLOWS = sorted((GITHUB / "workflows").glob("*.yml"))
ACTIONLINT = ROOT / "tools" / "actionlint"

pytestmark = pytest.mark.one_backend


def load(path):
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def actionlint(*files):
    """Runs actionlint; skips the test where it is not installed."""
    installed = (ACTIONLINT / "node_modules" / "@tktco").is_dir()
    if not (shutil.which("node") and installed):
        missing = "needs `npm ci --prefix tools/actionlint`"
        if os.environ.get("NEED_ACTIONLINT"):
            pytest.fail(missing)
        pytest.skip(missing)
    return subprocess.run(
        ["node", ACTIONLINT / "run.mjs", *files],
        capture_output=True,
        text=True,
    )


def test_actionlint_passes():
    result = actionlint()
    assert result.returncode == 0, result.stdout + result.stderr
    assert f"{len(WORKFLOWS)} workflows, 0 errors" in result.stdout


def test_actionlint_finds_errors(tmp_path):
    text = (GITHUB / "workflows" / "tests.yml").read_text("utf-8")
    errors = [
        ("runs-on: ubuntu-latest", "runs-at: ubuntu-latest", "runs-at"),
        ("matrix.backend }}", "matrix.bakend }}", "bakend"),
        ("needs: tests", "needs: test", "does not exist"),
    ]
    files = []
    for number, (old, new, _) in enumerate(errors):
        assert old in text
        files.append(tmp_path / f"{number}.yml")
        files[-1].write_text(text.replace(old, new), encoding="utf-8")
    result = actionlint(*files)
    assert result.returncode == 1
    for file, (*_, expected) in zip(files, errors, strict=True):
        lines = [x for x in result.stdout.splitlines() if str(file) in x]
        assert any(expected in line for line in lines), result.stdout


def test_there_is_a_workflow_for_each_purpose():
    names = [path.stem for path in WORKFLOWS]
    assert names == ["docs", "lint", "nightly", "release", "tests", "wheels"]


def test_the_tests_run_on_every_backend_and_python():
    job = load(GITHUB / "workflows" / "tests.yml")["jobs"]["tests"]
    matrix = job["strategy"]["matrix"]
    assert matrix["backend"] == ["tensorflow", "jax", "torch"]
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    stated = [
        name.rpartition(" ")[2]
        for name in project["project"]["classifiers"]
        if re.search(r":: 3\.\d+$", name)
    ]
    assert matrix["python"] == stated
    count = len(matrix["shard"])
    assert matrix["shard"] == [f"{n}/{count}" for n in range(1, count + 1)]


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_a_workflow_has_few_permissions_and_calls_targets_of_make(path):
    workflow = load(path)
    assert workflow["permissions"] == {"contents": "read"}
    targets = re.findall(
        r"(?m)^([a-z-]+):.*## ", (ROOT / "Makefile").read_text()
    )
    for job in workflow["jobs"].values():
        for step in job["steps"]:
            for line in step.get("run", "").splitlines():
                called = re.findall(r"\bmake (?:-o lint )?([a-z-]+)", line)
                assert set(called) <= set(targets)


def test_only_the_release_may_publish():
    jobs = load(GITHUB / "workflows" / "release.yml")["jobs"]
    assert jobs["publish"]["permissions"] == {"id-token": "write"}
    assert jobs["publish"]["environment"] == "release"
    assert jobs["publish"]["needs"] == "build"
    # Trusted publishing: no workflow has a secret.
    assert not any("secrets." in path.read_text() for path in WORKFLOWS)


@pytest.mark.parametrize("name", ["bug", "feature", "question"])
def test_issue_forms_are_complete(name):
    form = load(GITHUB / "ISSUE_TEMPLATE" / f"{name}.yml")
    assert form.keys() == {"name", "description", "labels", "body"}
    fields = [each for each in form["body"] if each["type"] != "markdown"]
    ids = [each["id"] for each in fields]
    assert len(ids) == len(set(ids)) >= 3
    assert any(each.get("validations", {}).get("required") for each in fields)
    text = (GITHUB / "ISSUE_TEMPLATE" / f"{name}.yml").read_text("utf-8")
    assert name == "feature" or "python -m keras_attn.info" in text


def test_dependabot_updates_every_ecosystem():
    updates = load(GITHUB / "dependabot.yml")["updates"]
    found = {each["package-ecosystem"] for each in updates}
    assert found == {"pip", "github-actions", "npm"}
