"""Hook of MkDocs: adds the downloads of the tutorials to the site.

They are generated, because a repository with copies of its own files would grow
with each run.
"""

import pathlib
import sys

import nbformat
from mkdocs.structure.files import File

ROOT = pathlib.Path(__file__).parents[2]
# MkDocs loads a hook by its path.
sys.path.insert(0, str(ROOT))

from tools.tutorials.bundle import pack  # noqa: E402
from tools.tutorials.outputs import with_outputs  # noqa: E402
from tools.tutorials.scripts import discover  # noqa: E402


def on_files(files, config):
    """Adds notebook, script and archive of each tutorial that has a page."""
    for name, script in discover().items():
        folder = pathlib.Path(config.docs_dir, "tutorials", name)
        if folder.is_dir():
            for file, content in downloads(script, folder).items():
                uri = f"tutorials/{name}/{file}"
                files.append(File.generated(config, uri, content=content))
    return files


def downloads(script, folder):
    """Generates the downloads of a tutorial.

    Args:
        script: path of the tutorial.
        folder: path of its page, with the figures and outputs of a run.

    Returns:
        Dict from file name to bytes: the notebook with the outputs of the run,
        the script, and an archive with the modules that they import.
    """
    name = script.stem
    notebook = nbformat.writes(with_outputs(script, folder)) + "\n"
    figures = {path.name: path.read_bytes() for path in folder.glob("*.png")}
    return {
        f"{name}.ipynb": notebook.encode(),
        f"{name}.py": script.read_bytes(),
        f"{name}.zip": pack(script, figures),
    }
