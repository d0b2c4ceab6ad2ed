"""New prose around the outputs of an earlier run."""

import nbformat

from tools.tutorials.failure import BuildError
from tools.tutorials.run import notebook_of


def take_over(notebook, script):
    """Combines the current prose of a script with the outputs of its last run.

    Args:
        notebook: str. The notebook of the script's last run.
        script: path of the script, in which prose and `alt` texts may have
            changed since.

    Returns:
        Str, the notebook of the current script, with the outputs of that run.

    Raises:
        BuildError: the code has changed, too.
    """
    then = nbformat.reads(notebook, as_version=4)
    now = notebook_of(script)
    ran, runs = _code(then), _code(now)
    if [cell.source for cell in ran] != [cell.source for cell in runs]:
        raise BuildError(
            f"The code of {script.name} has changed since its page was built; "
            "only its prose may have changed. Build it."
        )
    for old, new in zip(ran, runs, strict=True):
        new.outputs, new.execution_count = old.outputs, old.execution_count
    now.metadata = then.metadata
    return nbformat.writes(now) + "\n"


def _code(notebook):
    return [cell for cell in notebook.cells if cell.cell_type == "code"]
