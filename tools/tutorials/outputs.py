"""The stored outputs of a run, from which page and notebook are made."""

import base64
import hashlib
import json
import pathlib

import nbformat

from tools.tutorials.failure import BuildError
from tools.tutorials.run import notebook_of

FILE = "outputs.json"
_IMAGE = "image/png"


def dump(notebook):
    """Formats the outputs of a notebook as the content of their file.

    Images are left out: they are files beside it, numbered in their order.

    Args:
        notebook: `nbformat.NotebookNode` with tidy outputs.

    Returns:
        Str, a JSON list with the digest of the code and the outputs of each
        code cell.
    """
    cells = []
    for cell in _code(notebook):
        outputs = json.loads(json.dumps(cell.outputs))
        for output in outputs:
            if _IMAGE in output.get("data", {}):
                output["data"][_IMAGE] = ""
        cells.append({"code": _digest(cell), "outputs": outputs})
    return json.dumps(cells, indent=1, ensure_ascii=False) + "\n"


def with_outputs(script, folder):
    """Returns the notebook of a script with the outputs of its last run.

    Args:
        script: path of the script. Its prose and `alt` texts may have changed
            since.
        folder: path of its page, with the outputs and images of that run.

    Returns:
        `nbformat.NotebookNode`.

    Raises:
        BuildError: the code of the script has changed since.
    """
    script, folder = pathlib.Path(script), pathlib.Path(folder)
    notebook = notebook_of(script)
    cells = json.loads((folder / FILE).read_text(encoding="utf-8"))
    code = _code(notebook)
    if [_digest(cell) for cell in code] != [cell["code"] for cell in cells]:
        raise BuildError(
            f"The code of {script.name} has changed since its page was built; "
            "only its prose may have changed. Build it."
        )
    images = 0
    for cell, ran in zip(code, cells, strict=True):
        cell.outputs = nbformat.from_dict(ran["outputs"])
        for output in cell.outputs:
            if _IMAGE in output.get("data", {}):
                images += 1
                path = folder / f"{script.stem}-{images}.png"
                image = base64.b64encode(path.read_bytes()).decode("ascii")
                output["data"][_IMAGE] = image
    for number, cell in enumerate(code, 1):
        cell.execution_count = number
    return notebook


def _code(notebook):
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def _digest(cell):
    return hashlib.sha256(cell.source.encode()).hexdigest()[:16]
