"""Builds the page folder of a tutorial."""

import os
import pathlib
import tempfile

from tools.tutorials import outputs
from tools.tutorials import stamp as stamps
from tools.tutorials.failure import BuildError
from tools.tutorials.page import render
from tools.tutorials.run import ROOT, run
from tools.tutorials.scripts import digest
from tools.tutorials.tidy import tidy

PAGES = ROOT / "docs" / "tutorials"
PAGE = "index.md"


def build(script, backend, quick=False, pages=PAGES, say=lambda line: None):
    """Runs a tutorial and writes its page.

    Args:
        script: path of the tutorial.
        backend: str. The backend of Keras.
        quick: bool. Run with QUICK=1; the page states it.
        pages: path. The folder of all tutorial pages.
        say: callable on a str, for progress messages. Default: no messages.

    Returns:
        Path of the page. Its folder also has the figures, the outputs and the
        stamp.

    Raises:
        BuildError: the tutorial failed, or has an output that a page cannot
            show. The output of an earlier build is kept.
    """
    ran = run(script, backend, quick, say)
    tidy(ran.notebook, ran.paths)
    stamp = stamps.make(script, ran, quick)
    contents = files(script.stem, ran.notebook, stamp)
    return _write(pathlib.Path(pages) / script.stem, contents)


def rewrite(script, pages=PAGES):
    """Writes a page again from the outputs and the stamp of its last run.

    Args:
        script: path of the tutorial. Only its prose may have changed.
        pages: path. The folder of all tutorial pages.

    Returns:
        Path of the page.

    Raises:
        BuildError: there is no page, or the code has changed. The output of an
            earlier build is kept.
    """
    folder = pathlib.Path(pages) / script.stem
    stamp = stamps.read(folder)
    if stamp is None:
        raise BuildError(f"{script.name} has no page yet. Build it.")
    notebook = outputs.with_outputs(script, folder)
    stamp = stamp | {"source": digest(script)}
    return _write(folder, files(script.stem, notebook, stamp))


def files(name, notebook, stamp):
    """Returns the files of a page's folder.

    Args:
        name: str. Name of the tutorial.
        notebook: `nbformat.NotebookNode` with tidy outputs.
        stamp: dict.

    Returns:
        Dict from file name to bytes, the stamp last.
    """
    page, pictures = render(notebook, stamp, name)
    return {
        PAGE: page.encode(),
        **pictures,
        outputs.FILE: outputs.dump(notebook).encode(),
        stamps.FILE: stamps.text(stamp).encode(),
    }


def _write(folder, contents):
    folder.mkdir(parents=True, exist_ok=True)
    # All files are on disk before the first one is replaced.
    with tempfile.TemporaryDirectory(dir=folder) as fresh:
        for name, content in contents.items():
            (pathlib.Path(fresh) / name).write_bytes(content)
        for name in contents:
            os.replace(pathlib.Path(fresh) / name, folder / name)
    for path in folder.iterdir():
        if path.name not in contents:
            path.unlink()
    return folder / PAGE
