"""Commands, examples and links of README and CONTRIBUTING."""

import itertools
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tomllib

import pytest

from tests.helpers.cases import spread
from tests.helpers.examples import blocks, run

ROOT = pathlib.Path(__file__).parents[1]
README, CONTRIBUTING, INSTALL = (
    (ROOT / name).read_text(encoding="utf-8")
    for name in ("README.md", "CONTRIBUTING.md", "docs/install.md")
)
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
EXTRAS = PROJECT["project"]["optional-dependencies"].keys()
MODULES = {"pytest", "venv"}


COMMANDS = [
    line
    for text in (README, CONTRIBUTING, INSTALL)
    for block in blocks("sh", text)
    for line in block.splitlines()
    if line.strip() and not line.startswith("#")
]


def wrong(command):
    """Returns a description of an invalid command, or None."""
    words = shlex.split(command, comments=True)
    while words and re.fullmatch(r"[A-Z_]+=\S*", words[0]):
        words.pop(0)
    program = pathlib.PurePath(words[0]).name
    if program == "make":
        return _wrong_make(words[1:])
    if program == "pip":
        return _wrong_install(words[1:])
    if program in ("python", "python3"):
        return _wrong_python(words[1:])
    return f"`{program}` is not known here"


def _wrong_make(words):
    # Do not inherit the flags of the make that runs these tests.
    clean = {k: v for k, v in os.environ.items() if not k.startswith("MA")}
    result = subprocess.run(
        ["make", "--dry-run", *words],
        cwd=ROOT,
        env=clean,
        capture_output=True,
        text=True,
    )
    if all("=" in word for word in words):
        return "no target is named"
    return result.stderr.strip() if result.returncode else None


def _wrong_install(words):
    if words[0] != "install":
        return "only `pip install` is known here"
    paths = [b for a, b in itertools.pairwise(words) if a == "-c"]
    missing = [path for path in paths if not (ROOT / path).is_file()]
    if missing:
        return f"no file {missing[0]}"
    ours = re.findall(r"(?<!\S)(?:\.|keras-attn)\[(.*?)\]", " ".join(words))
    if not ours:
        return "this project is not installed"
    extras = {extra for names in ours for extra in names.split(",")}
    unknown = sorted(extras - EXTRAS)
    return f"no extra {unknown[0]}" if unknown else None


def _wrong_python(words):
    if words[0].startswith("examples/"):
        return _wrong_program(words)
    if words[0] == "-m":
        ours = ROOT.joinpath(*words[1].split("."))
        known = words[1] in MODULES or (
            ours.with_suffix(".py").is_file() or ours.is_dir()
        )
        words = words[2:]
        if not known:
            return "this module is not known here"
        if words == [".venv"]:
            return None
    missing = [word for word in words if not (ROOT / word).exists()]
    return f"no file {missing[0]}" if missing else None


def _wrong_program(words):
    """Checks the subcommand and the options of an example program."""
    if not (ROOT / words[0]).is_file():
        return f"no file {words[0]}"
    result = subprocess.run(
        [sys.executable, *words[:2], "--help"],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    if result.returncode:
        return result.stderr.strip()
    options = [word for word in words if word.startswith("--")]
    known = set(re.findall(r"--[a-z-]+", result.stdout))
    unknown = sorted(set(options) - known)
    return f"no option {unknown[0]}" if unknown else None


def skip_without_make(command):
    if "make" in command and not shutil.which("make"):
        pytest.skip("make is not installed")


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_exists(command):
    skip_without_make(command)
    assert wrong(command) is None


@pytest.mark.parametrize("command", ["make translate", "make test"])
def test_the_main_commands_are_documented(command):
    assert any(line.split("#")[0].strip() == command for line in COMMANDS)


@pytest.mark.parametrize(
    "command, expected",
    [
        ("make tea", "tea"),
        ("KERAS_BACKEND=jax make tea  # test", "tea"),
        ("make DATA=a.txt", "no target"),
        ("pip install '.[tea]'", "no extra tea"),
        ("pip install 'keras-attn[jax,tea]'", "no extra tea"),
        ("pip install -c tea.txt '.[jax]'", "no file tea.txt"),
        ("python examples/tea.py train", "no file examples/tea.py"),
        ("python examples/translate.py tea", "invalid choice"),
        ("python examples/translate.py train --tea 3", "no option --tea"),
        ("pip install keras", "not installed"),
        ("pip freeze", "only `pip install`"),
        ("python tutorials/tea.py", "no file tutorials/tea.py"),
        ("python -m tea", "not known"),
        ("python -m tools.tea", "not known"),
        ("brew tea", "`brew` is not known"),
    ],
)
def test_a_wrong_command_is_detected(command, expected):
    skip_without_make(command)
    assert expected in wrong(command)


# A block is one program. The comment in `print(...)  # text` is its output.
@pytest.mark.parametrize("code", spread(blocks("python", README)))
def test_every_example_prints_the_documented_output(code, capsys):
    names = {"__name__": "__main__"}
    expected, printed = run(code, names, capsys, "README.md")
    assert expected
    assert printed == expected


def test_examples_are_found():
    assert len(blocks("python", README)) >= 2
    assert blocks("sh", "```sh\na\n```\n```python\nb\n```\n") == ["a\n"]
    assert blocks("sh", "1. b\n\n    ```sh\n    a\n    ```\n") == ["a\n"]


@pytest.mark.parametrize(
    "target", re.findall(r"\]\(([^)#]+)", README + CONTRIBUTING)
)
def test_every_linked_file_exists(target):
    assert target.startswith("http") or (ROOT / target).is_file()
