"""The archives that pip installs: equal bytes, with the tests, which run."""

import hashlib
import importlib.util
import os
import pathlib
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile

import pytest

ROOT = pathlib.Path(__file__).parents[1]
# What no archive has: git's files, and what programs write.
WRITTEN = shutil.ignore_patterns(
    *(".git", ".venv", "__pycache__", "*.egg-info", "node_modules"),
    *(".hypothesis", ".mypy_cache", ".pytest_cache", ".ruff_cache"),
)
BUILD = """
import pathlib, sys
sys.path.insert(0, "tools/build_backend")
import reproducible
build = getattr(reproducible, sys.argv[1])
build(sys.argv[2])
"""

pytestmark = pytest.mark.one_backend


def build(kind, checkout, folder):
    """Builds an archive; returns its path."""
    folder.mkdir()
    clean = {k: v for k, v in os.environ.items() if k != "SOURCE_DATE_EPOCH"}
    result = subprocess.run(
        [sys.executable, "-c", BUILD, f"build_{kind}", folder],
        cwd=checkout,
        env=clean,
        capture_output=True,
        text=True,
    )
    assert result.returncode == 0, result.stderr[-3000:]
    (archive,) = folder.iterdir()
    return archive


def digest(path):
    """Not the bytes: pytest would compare megabytes line by line."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def copy_of_checkout(folder):
    """Copies the checkout; the files get the current time."""
    ignored = {"build", "dist", "runs", "site"}

    def ignore(path, names):
        top = ignored if pathlib.Path(path) == ROOT else set()
        return WRITTEN(path, names) | top

    return shutil.copytree(
        ROOT, folder, ignore=ignore, copy_function=shutil.copyfile
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("distribution")


@pytest.fixture(scope="module")
def checkout(folder):
    return copy_of_checkout(folder / "checkout")


@pytest.fixture(scope="module")
def sdist(folder, checkout):
    return build("sdist", checkout, folder / "sdist")


@pytest.fixture(scope="module")
def unpacked(folder, sdist):
    """The checkout that the source archive contains."""
    with tarfile.open(sdist) as archive:
        archive.extractall(folder / "unpacked", filter="data")
    (root,) = (folder / "unpacked").iterdir()
    return root


def test_the_source_archive_of_a_source_archive_is_the_same(
    folder, sdist, unpacked
):
    # Built in another folder, from files of another time.
    again = build("sdist", unpacked, folder / "again")
    assert again.name == sdist.name
    assert digest(again) == digest(sdist)


def test_the_wheel_of_the_source_archive_is_that_of_the_checkout(
    folder, checkout, unpacked
):
    first = build("wheel", checkout, folder / "wheel")
    second = build("wheel", unpacked, folder / "wheel_of_sdist")
    assert digest(first) == digest(second)
    names = zipfile.ZipFile(first).namelist()
    tops = {name.partition("/")[0].partition("-")[0] for name in names}
    assert tops == {"keras_attn"}
    assert "keras_attn/layers/multi_head_attention.py" in names
    # Without it, type checkers ignore the annotations.
    assert "keras_attn/py.typed" in names


def test_the_time_of_a_release_is_its_own(folder, sdist, monkeypatch):
    other = pathlib.Path(shutil.copy(sdist, folder / "other.tar.gz"))
    path = ROOT / "tools" / "build_backend" / "reproducible.py"
    spec = importlib.util.spec_from_file_location("reproducible", path)
    backend = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(backend)
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    backend.normalize(other)
    assert digest(other) != digest(sdist)
    for path, time in [(sdist, 315532800), (other, 1700000000)]:
        with tarfile.open(path) as archive:
            members = archive.getmembers()
        assert {member.mtime for member in members} == {time}
        assert {member.uid for member in members} == {0}


def test_the_source_archive_has_every_file_of_the_repository(sdist):
    if not (ROOT / ".git").exists():
        pytest.skip("not a git repository")
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    ).stdout.split("\n")
    expected = {name for name in listed if (ROOT / name).is_file()}
    assert len(expected) > 1000
    with tarfile.open(sdist) as archive:
        members = [each.name for each in archive if each.isfile()]
    found = {name.partition("/")[2] for name in members}
    assert expected - found == set()
    assert found - expected == {"PKG-INFO", "setup.cfg"}


def test_the_tests_of_the_source_archive_run(unpacked):
    result = subprocess.run(
        [
            *(sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"),
            *("tests/ops/test_sinusoids.py", "tests/test_deprecation.py"),
        ],
        cwd=unpacked,
        env=os.environ | {"PYTHONPATH": str(unpacked)},
        capture_output=True,
        text=True,
    )
    assert result.returncode == 0, result.stdout[-3000:]
    assert " passed" in result.stdout


def test_the_extra_all_has_every_extra_for_users():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    extras = project["project"]["optional-dependencies"]
    (everything,) = extras["all"]
    named = everything.partition("[")[2].rstrip("]").split(",")
    for_developers = {"benchmarks", "docs", "mutants", "release", "test"}
    for_developers |= {"types"}
    assert set(named) == extras.keys() - for_developers - {"all"}
