"""Every tutorial runs with QUICK=1, and two of them become complete pages.

`test_tutorial_pages` checks that each committed page comes from a full run.
"""

import os
import re
import runpy

import keras
import nbformat
import pytest

from tests.helpers.cases import spread
from tools.site.downloads import downloads
from tools.tutorials import stamp as stamps
from tools.tutorials.build import build
from tools.tutorials.run import NOT_ON_PAGE, notebook_of
from tools.tutorials.scripts import discover

pytestmark = pytest.mark.one_backend

SCRIPTS = discover()
BACKEND = keras.backend.backend()


@pytest.mark.parametrize("name", spread(SCRIPTS))
def test_quick_run(name, tmp_path, monkeypatch, capsys):
    # Settings of tutorials.
    for variable in set(os.environ) - {"HOME", "PATH"}:
        if variable.isupper() and variable.isalpha():
            monkeypatch.delenv(variable)
    monkeypatch.setenv("QUICK", "1")
    monkeypatch.chdir(tmp_path)
    # Its own assertions check the results.
    runpy.run_path(str(SCRIPTS[name]), run_name="__main__")
    assert f"Keras {keras.__version__} on {BACKEND}" in capsys.readouterr().out


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
    notebook = nbformat.reads(
        downloads(script, folder)[f"{name}.ipynb"].decode(), as_version=4
    )
    nbformat.validate(notebook)
    assert all(
        output.output_type != "error" and output.get("name") != "stderr"
        for cell in notebook.cells
        for output in cell.get("outputs", [])
    )
