"""Complete pages from runs with QUICK=1, for two tutorials.

The tests in `tests/tutorials` run every script, each on one backend;
`test_tutorial_pages` checks that each committed page comes from a full run.
"""

import re

import keras
import nbformat
import pytest

from tools.tutorials import stamp as stamps
from tools.tutorials.build import build
from tools.tutorials.run import NOT_ON_PAGE, ROOT, notebook_of
from tools.tutorials.scripts import discover

pytestmark = pytest.mark.one_backend

SCRIPTS = discover()
BACKEND = keras.backend.backend()


@pytest.mark.parametrize("name", ["bert", "tagging"])
def test_quick_run_builds_a_complete_page(name, tmp_path):
    script = SCRIPTS[name]
    page = build(script, BACKEND, quick=True, pages=tmp_path)
    text, folder = page.read_text(encoding="utf-8"), page.parent
    stamp = stamps.read(folder)
    assert stamp["quick"] and stamp["backend"] == BACKEND
    assert stamps.changed(script, stamp) == []
    first, *others = [
        cell.source.strip()
        for cell in notebook_of(script).cells
        if NOT_ON_PAGE not in cell.metadata.get("tags", [])
    ]
    # The box with the stamp comes after the title.
    for part in [*first.split("\n", 1), *others]:
        assert part.strip() in text
    assert "{.text .output}" in text
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f]", text)
    pictures = re.findall(r"!\[.+\]\((.+)\)", text)
    assert pictures
    for picture in pictures:
        assert (folder / picture).stat().st_size > 1000
    notebook = nbformat.read(folder / f"{script.stem}.ipynb", as_version=4)
    nbformat.validate(notebook)
    assert all(
        output.output_type != "error" and output.get("name") != "stderr"
        for cell in notebook.cells
        for output in cell.get("outputs", [])
    )


def test_each_script_has_its_own_tests():
    """The tests of a script run once, with the backend named by their mark."""
    assert SCRIPTS
    for name in SCRIPTS:
        tests = ROOT / f"tests/tutorials/test_{name}.py"
        assert "QUICK" in tests.read_text(encoding="utf-8"), name
