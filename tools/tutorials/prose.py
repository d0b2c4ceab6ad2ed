"""New words around what a run has printed and drawn."""

import nbformat

from tools.tutorials.failure import BuildError
from tools.tutorials.run import notebook_of


def take_over(notebook, script):
    """Takes over what a script says now, and what it printed when it ran.

    Args:
        notebook: str. The notebook of the script's last run.
        script: path of the script, in which prose and the texts of pictures
            may have changed since.

    Returns:
        Str, the notebook of the script as it is, with the outputs of that run.

    Raises:
        BuildError: its code has changed, too.
    """
    then = nbformat.reads(notebook, as_version=4)
    now = notebook_of(script)
    ran, runs = _code(then), _code(now)
    if [cell.source for cell in ran] != [cell.source for cell in runs]:
        raise BuildError(
            f"{script.name} runs other code than when its page was made; only "
            "its prose may have changed. Build it."
        )
    for old, new in zip(ran, runs, strict=True):
        new.outputs, new.execution_count = old.outputs, old.execution_count
    now.metadata = then.metadata
    return nbformat.writes(now) + "\n"


def _code(notebook):
    return [cell for cell in notebook.cells if cell.cell_type == "code"]
