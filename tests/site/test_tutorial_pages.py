"""The committed page of every tutorial comes from a full run."""

import base64
import html
import re

import nbformat
import pytest

from tools.site.downloads import DIAGRAM, downloads
from tools.tutorials import stamp as stamps
from tools.tutorials.build import PAGES, files
from tools.tutorials.outputs import with_outputs
from tools.tutorials.run import notebook_of
from tools.tutorials.scripts import discover

pytestmark = pytest.mark.one_backend

SCRIPTS = discover()
AGAIN = "run it: .venv/bin/python -m tools.tutorials build {}"


@pytest.fixture(params=SCRIPTS.values(), ids=SCRIPTS)
def script(request):
    return request.param


def test_page_is_up_to_date(script):
    stamp = stamps.read(PAGES / script.stem)
    assert not stamps.has_changed(script, stamp), AGAIN.format(script.stem)


def test_page_comes_from_a_full_run(script):
    # Fails while the committed page comes from a run with QUICK=1.
    assert not stamps.read(PAGES / script.stem)["quick"], AGAIN.format(
        script.stem
    )


def test_folder_has_generated_files_only(script):
    folder = PAGES / script.stem
    notebook = with_outputs(script, folder)
    made = files(script.stem, notebook, stamps.read(folder))
    found = {path.name: path.read_bytes() for path in folder.iterdir()}
    assert found == made


def test_page_shows_no_object_without_text(script):
    # A cell that ends with a call shows what the call returns.
    page = (PAGES / script.stem / "index.md").read_text(encoding="utf-8")
    assert not re.search(r"<[\w. ]+ at 0x", page)


def test_downloads(script):
    folder, name = PAGES / script.stem, script.stem
    made = downloads(script, folder)
    assert set(made) == {f"{name}.{kind}" for kind in ("ipynb", "py")}
    assert made[f"{name}.py"] == script.read_bytes()
    notebook = nbformat.reads(made[f"{name}.ipynb"].decode(), as_version=4)
    nbformat.validate(notebook)
    sources = [cell.source for cell in notebook.cells]
    attached = [source.replace("](attachment:", "](") for source in sources]
    # Diagrams are embedded as data.
    texts = [cell.source for cell in notebook_of(script).cells]
    assert [re.sub(r"<img [^>]*>", "", source) for source in attached] == [
        DIAGRAM.sub("", text) for text in texts
    ]
    assert not any(".svg)" in source for source in sources)
    embedded = [
        (html.unescape(alt), base64.b64decode(data))
        for source in sources
        for alt, data in re.findall(
            r'<img alt="([^"]+)" src="data:image/svg\+xml;base64,([^"]+)">',
            source,
        )
    ]
    assert embedded == [
        (" ".join(alt.split()), (folder / path).read_bytes())
        for text in texts
        for alt, path in DIAGRAM.findall(text)
    ]
    images = [
        output["data"]["image/png"]
        for cell in notebook.cells
        for output in cell.get("outputs", [])
        if "image/png" in output.get("data", {})
    ]
    numbered = [folder / f"{name}-{i + 1}.png" for i in range(len(images))]
    assert [base64.b64decode(image) for image in images] == [
        path.read_bytes() for path in numbered
    ]
    # Figures shown in prose, before the code that draws them.
    shown = [
        (cell.attachments[file]["image/png"], file)
        for cell in notebook.cells
        for file in re.findall(r"\]\(attachment:(\S+)\)", cell.source)
    ]
    assert shown
    for image, file in shown:
        assert base64.b64decode(image) == (folder / file).read_bytes()


def test_removed_tutorials_leave_no_folder():
    folders = {path.name for path in PAGES.iterdir() if path.is_dir()}
    assert folders == set(SCRIPTS)


def test_tutorials_are_discovered():
    assert "translate" in SCRIPTS
