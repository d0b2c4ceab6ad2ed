"""The line of the README that installs the library works."""

import importlib.metadata
import os
import pathlib
import re
import shlex
import shutil
import site
import subprocess
import sys
import sysconfig

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.helpers.examples import blocks

ROOT = pathlib.Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")

pytestmark = pytest.mark.one_backend


def install_lines():
    """Lines of the README that install the library with pip."""
    return [
        line
        for block in blocks("sh", README)
        for line in block.splitlines()
        if line.startswith("pip install")
    ]


def test_the_install_line_installs_the_checkout(tmp_path):
    (line,) = install_lines()
    # A copy, since a build writes beside the sources.
    checkout = tmp_path / "checkout"
    for folder in ("keras_attn", "tools/build_backend"):
        shutil.copytree(
            ROOT / folder,
            checkout / folder,
            ignore=shutil.ignore_patterns("__pycache__"),
        )
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, checkout / name)
    venv = tmp_path / "venv"
    command = [sys.executable, "-m", "venv", "--without-pip", venv]
    subprocess.run(command, check=True)
    python = venv / "bin" / "python"
    # pip, setuptools and the dependencies come from this environment, so that
    # no network is needed.
    libraries = sysconfig.get_path("purelib", vars={"base": str(venv)})
    installed = [*site.getsitepackages(), sysconfig.get_path("purelib")]
    path = pathlib.Path(libraries) / "dependencies.pth"
    path.write_text("\n".join(dict.fromkeys(installed)), encoding="utf-8")
    program, *arguments = shlex.split(line)
    assert program == "pip"
    # Of this variable, "0" switches build isolation off.
    clean = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    subprocess.run(
        [python, "-m", "pip", "--disable-pip-version-check", *arguments],
        check=True,
        cwd=checkout,
        env=clean | {"PIP_NO_BUILD_ISOLATION": "0", "PIP_NO_INDEX": "1"},
    )
    found = subprocess.run(
        [python, "-c", "import keras_attn; print(keras_attn.__file__)"],
        check=True,
        cwd=tmp_path,
        env=clean,
        capture_output=True,
        text=True,
    ).stdout.strip()
    assert re.match(re.escape(str(venv)), found.splitlines()[-1])


def required(package, extras=()):
    """Names of all packages that pip installs with these extras."""
    names, todo, seen = (
        set(),
        [(package, extra) for extra in ("", *extras)],
        set(),
    )
    while todo:
        package, extra = todo.pop()
        if (package, extra) in seen:
            continue
        seen.add((package, extra))
        names.add(package)
        for line in importlib.metadata.requires(package) or ():
            needed = Requirement(line)
            if needed.marker and not needed.marker.evaluate({"extra": extra}):
                continue
            name = canonicalize_name(needed.name)
            todo += [(name, extra) for extra in ("", *needed.extras)]
    return names


@pytest.mark.parametrize("backend", ["jax", "torch"])
def test_text_and_examples_need_no_other_backend(backend):
    found = required("keras-attn", (backend, "text", "examples"))
    assert {"keras", "tokenizers", "sentencepiece", backend} <= found
    others = {"jax", "tensorflow", "tensorflow-text", "torch"} - {backend}
    assert not found & others


def test_tensorflow_text_is_an_extra_of_its_own():
    found = required("keras-attn", ("text-tensorflow",))
    assert {"tensorflow", "tensorflow-text", "sentencepiece"} <= found
