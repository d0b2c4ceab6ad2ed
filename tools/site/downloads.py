"""Hook of MkDocs: adds the downloads of the tutorials to the site.

They are generated, because a repository with copies of its own files would grow
with each run.
"""

import base64
import html
import pathlib
import re
import sys

import nbformat
from mkdocs.structure.files import File

ROOT = pathlib.Path(__file__).parents[2]
# MkDocs loads a hook by its path.
sys.path.insert(0, str(ROOT))
# A diagram in the text of a tutorial: its alt text and its path.
DIAGRAM = re.compile(r"!\[([^\]]*)\]\(([./]*diagrams/\w+\.svg)\)")

from tools.tutorials.outputs import with_outputs  # noqa: E402
from tools.tutorials.scripts import discover  # noqa: E402


def on_files(files, config):
    """Adds the notebook and the script of each tutorial that has a page."""
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
        and the script. Figures shown in the text of the notebook are attached
        to its cells; diagrams are embedded, because JupyterLab does not show
        attached SVG files.
    """
    name = script.stem
    notebook = with_outputs(script, folder)
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            _attach(cell, folder)
    return {
        f"{name}.ipynb": (nbformat.writes(notebook) + "\n").encode(),
        f"{name}.py": script.read_bytes(),
    }


def _attach(cell, folder):
    attached = {}

    def rename(match):
        file = match[1]
        image = base64.b64encode((folder / file).read_bytes()).decode("ascii")
        attached[file] = {"image/png": image}
        return f"](attachment:{file})"

    def embed(match):
        svg = (folder / match[2]).read_bytes()
        data = base64.b64encode(svg).decode("ascii")
        alt = html.escape(" ".join(match[1].split()))
        return f'<img alt="{alt}" src="data:image/svg+xml;base64,{data}">'

    cell.source = re.sub(r"\]\(([\w-]+\.png)\)", rename, cell.source)
    cell.source = DIAGRAM.sub(embed, cell.source)
    if attached:
        cell.attachments = nbformat.from_dict(attached)
