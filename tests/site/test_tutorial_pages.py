"""The committed page of every tutorial comes from a full run."""

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


def test_page_is_up_to_date(script):
    changed = stamps.changed(script, stamps.read(PAGES / script.stem))
    assert changed == [], AGAIN.format(script.stem)


def test_page_comes_from_a_full_run(script):
    # Fails while the committed page comes from a run with QUICK=1.
    assert not stamps.read(PAGES / script.stem)["quick"], AGAIN.format(
        script.stem
    )


def test_notebook_has_the_cells_of_the_script(script):
    path = PAGES / script.stem / f"{script.stem}.ipynb"
    committed = nbformat.read(path, as_version=4)
    sources = [cell.source for cell in committed.cells]
    assert sources == [cell.source for cell in notebook_of(script).cells]


def unpacked(archive):
    """Returns the files of an archive by name; their compression may differ."""
    with zipfile.ZipFile(io.BytesIO(archive)) as opened:
        return {name: opened.read(name) for name in opened.namelist()}


def test_folder_has_generated_files_only(script):
    folder, archive = PAGES / script.stem, f"{script.stem}.zip"
    notebook = (folder / f"{script.stem}.ipynb").read_text(encoding="utf-8")
    made = files(script, notebook, stamps.read(folder))
    found = {path.name: path.read_bytes() for path in folder.iterdir()}
    assert unpacked(found.pop(archive)) == unpacked(made.pop(archive))
    assert found == made


def test_archive_has_the_images_shown_before_running(script):
    packed = unpacked((PAGES / script.stem / f"{script.stem}.zip").read_bytes())
    text = packed[f"{script.stem}/{script.stem}.ipynb"].decode()
    shown = re.findall(rf"\]\(({script.stem}-\d+\.png)\)", text)
    assert shown
    assert {f"{script.stem}/{file}" for file in shown} <= set(packed)


def test_removed_tutorials_leave_no_folder():
    folders = {path.name for path in PAGES.iterdir() if path.is_dir()}
    assert folders == set(SCRIPTS)


def test_tutorials_are_discovered():
    assert "translate" in SCRIPTS
    assert "settings" not in SCRIPTS
