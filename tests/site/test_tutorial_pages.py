"""The committed page of every tutorial is that of a full run of it."""

import io
import re
import zipfile

import nbformat
import pytest

from tools.tutorials import stamp as stamps
from tools.tutorials.build import PAGES, files
from tools.tutorials.run import notebook_of
from tools.tutorials.scripts import discover

pytestmark = pytest.mark.one_backend

SCRIPTS = discover()
AGAIN = "run it: .venv/bin/python -m tools.tutorials build {}"


@pytest.fixture(params=SCRIPTS.values(), ids=SCRIPTS)
def script(request):
    return request.param


def test_the_page_is_of_the_script_as_it_is(script):
    changed = stamps.changed(script, stamps.read(PAGES / script.stem))
    assert changed == [], AGAIN.format(script.stem)


def test_the_page_is_of_a_full_run(script):
    # Red while the committed page comes from a run with QUICK=1.
    assert not stamps.read(PAGES / script.stem)["quick"], AGAIN.format(
        script.stem
    )


def test_the_notebook_holds_the_cells_of_the_script(script):
    path = PAGES / script.stem / f"{script.stem}.ipynb"
    committed = nbformat.read(path, as_version=4)
    sources = [cell.source for cell in committed.cells]
    assert sources == [cell.source for cell in notebook_of(script).cells]


def unpacked(archive):
    """The files of an archive, by name; how they are packed may differ."""
    with zipfile.ZipFile(io.BytesIO(archive)) as opened:
        return {name: opened.read(name) for name in opened.namelist()}


def test_nothing_in_the_folder_was_written_by_hand(script):
    folder, archive = PAGES / script.stem, f"{script.stem}.zip"
    notebook = (folder / f"{script.stem}.ipynb").read_text(encoding="utf-8")
    made = files(script, notebook, stamps.read(folder))
    found = {path.name: path.read_bytes() for path in folder.iterdir()}
    assert unpacked(found.pop(archive)) == unpacked(made.pop(archive))
    assert found == made


def test_what_a_notebook_shows_at_its_head_is_packed(script):
    packed = unpacked((PAGES / script.stem / f"{script.stem}.zip").read_bytes())
    text = packed[f"{script.stem}/{script.stem}.ipynb"].decode()
    shown = re.findall(rf"\]\(({script.stem}-\d+\.png)\)", text)
    assert shown
    assert {f"{script.stem}/{file}" for file in shown} <= set(packed)


def test_no_folder_is_left_of_a_tutorial_that_is_gone():
    folders = {path.name for path in PAGES.iterdir() if path.is_dir()}
    assert folders == set(SCRIPTS)


def test_there_are_tutorials():
    assert "translate" in SCRIPTS
    assert "settings" not in SCRIPTS
