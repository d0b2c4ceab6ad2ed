"""A release is refused until version, changelog and addresses agree."""

import pathlib

import pytest

import keras_attn
from tools.release import main, notes, problems

ROOT = pathlib.Path(__file__).parents[2]
READY = {
    "keras_attn/version.py": '"""The version."""\n\n__version__ = "0.2.0"\n',
    "CITATION.cff": "cff-version: 1.2.0\nversion: 0.2.0\n",
    "CHANGELOG.md": "# Changelog\n\n## [0.2.0] - 2027-03-01\n\n- New.\n\n"
    "## [0.1.0] - 2026-12-01\n\n- Old.\n",
    "pyproject.toml": '[project.urls]\nSource = "https://attn.example/a"\n',
}

pytestmark = pytest.mark.one_backend


@pytest.fixture
def ready(tmp_path):
    """A checkout that can be released as v0.2.0."""
    (tmp_path / "keras_attn").mkdir()
    for name, text in READY.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    return tmp_path


def test_a_ready_release_has_no_problem(ready):
    assert problems("v0.2.0", ready) == []
    assert notes("0.2.0", ready) == "- New."
    assert notes("0.1.0", ready) == "- Old."


@pytest.mark.parametrize(
    "name, old, new, expected",
    [
        ("keras_attn/version.py", "0.2.0", "0.2.1", "must be v0.2.1"),
        ("CITATION.cff", "0.2.0", "0.1.0", "must be 0.2.0"),
        ("CHANGELOG.md", "2027-03-01", "unreleased", "YYYY-MM-DD"),
        ("CHANGELOG.md", "[0.2.0]", "[0.3.0]", "Received: none"),
        ("pyproject.toml", "attn.example", "example.org", "a placeholder"),
    ],
)
def test_what_is_missing_is_named(ready, name, old, new, expected):
    path = ready / name
    path.write_text(path.read_text("utf-8").replace(old, new), "utf-8")
    assert expected in "\n".join(problems("v0.2.0", ready))


def test_this_checkout_has_one_version(capsys):
    tag = f"v{keras_attn.__version__}"
    found = "\n".join(problems(tag))
    assert "CITATION.cff" not in found and "The tag" not in found
    assert main([tag]) == (1 if found else 0)
    assert capsys.readouterr().out.strip() == (
        found or f"{tag} can be released."
    )


def test_addresses_of_the_project_are_in_one_file():
    found = [
        path.name
        for folder in (ROOT, ROOT / ".github", ROOT / "docs")
        for path in folder.glob("*.*")
        if path.is_file()
        and path.suffix in (".cff", ".md", ".toml", ".yml")
        and "example.org" in path.read_text(encoding="utf-8")
    ]
    assert found == ["pyproject.toml"]
