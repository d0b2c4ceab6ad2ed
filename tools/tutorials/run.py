"""Runs a tutorial in a Jupyter kernel, in an empty folder."""

import ast
import os
import pathlib
import sys
import tempfile
import time
from typing import Any, NamedTuple

import jupytext
import nbformat
from jupyter_client import AsyncKernelManager
from jupyter_client.kernelspec import KernelSpecManager
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, DeadKernelError

from tools.tutorials.failure import BuildError

ROOT = pathlib.Path(__file__).parents[2]
# The first cell of the notebook, not shown on the page: without it, a notebook
# does not show figures created without pyplot. Colorblind readers can tell the
# colors apart (Petroff 2021, https://arxiv.org/abs/2107.02270).
SETUP = """\
%matplotlib inline
%config InlineBackend.figure_format = "retina"
import matplotlib.pyplot

matplotlib.pyplot.style.use("petroff10")"""
NOT_ON_PAGE = "remove-cell"
# The facts are the value of their cell instead of being printed, because prints
# could be interleaved with the output of a backend or a thread.
_ASK = "from tools.tutorials.facts import facts; facts()"

_COMPILE_FAST = (
    "--xla_backend_optimization_level=0 "
    "--xla_llvm_disable_expensive_passes=true"
)

# Environment variables passed to the kernel. Any other variable might be a
# setting of a tutorial, and pages show the default settings.
_KEPT = {"HOME", "LANG", "PATH", "SYSTEMROOT", "TMPDIR", "TZ"}
_KEPT_PREFIXES = (
    "CUDA",
    "JAX_",
    "KERAS_",
    "LC_",
    "LD_",
    "MALLOC_",
    "NVIDIA_",
    "OMP_",
    "TF_",
    "XLA_",
)


class Ran(NamedTuple):
    """The result of running a tutorial.

    Args:
        notebook: `nbformat.NotebookNode` with the raw outputs.
        facts: dict, from `tools.tutorials.facts`.
        seconds: float. Time of the run, including the start of Python.
        paths: list of str. Paths of this machine that no page may show.
    """

    notebook: Any
    facts: dict
    seconds: float
    paths: list


def notebook_of(script):
    """Reads a script in percent format as a notebook without outputs."""
    script = pathlib.Path(script)
    text = script.read_text(encoding="utf-8")
    notebook = jupytext.reads(text, fmt="py:percent")
    setup = nbformat.v4.new_code_cell(SETUP, metadata={"tags": [NOT_ON_PAGE]})
    notebook.cells.insert(0, setup)
    notebook.metadata = nbformat.from_dict(
        {
            "kernelspec": {
                "display_name": "Python 3",
                "language": "python",
                "name": "python3",
            },
            "language_info": {"file_extension": ".py", "name": "python"},
        }
    )
    for number, cell in enumerate(notebook.cells):
        cell.id = f"cell-{number}"
    return notebook


def run(script, backend, quick=False, say=lambda line: None):
    """Runs a tutorial from its first cell to its last.

    It runs in an empty folder that is deleted afterwards, without the settings
    that the environment holds for tutorials.

    Args:
        script: path of a script in percent format.
        backend: str. The backend of Keras.
        quick: bool. Run with QUICK=1. Default: False.
        say: callable on a str, for progress messages. Default: no messages.

    Returns:
        A `Ran`.

    Raises:
        BuildError: a cell failed, with its traceback.
    """
    notebook = notebook_of(script)
    count = len(notebook.cells)
    notebook.cells.append(nbformat.v4.new_code_cell(_ASK))
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder).resolve()
        work = folder / "work"
        work.mkdir()
        manager = AsyncKernelManager(
            connection_file=str(folder / "kernel.json"),
            # Only the kernel of this interpreter, whatever else is installed.
            kernel_spec_manager=KernelSpecManager(kernel_dirs=[]),
            transport="ipc",
        )

        def tell(cell, cell_index):
            if cell_index < count:
                say(f"cell {cell_index} of {count - 1}")

        client = NotebookClient(
            notebook,
            km=manager,
            on_cell_execute=tell,
            record_timing=False,
            # Its folder is deleted, so there is nothing to clean up.
            shutdown_kernel="immediate",
            store_widget_state=False,
            timeout=None,
        )
        started = time.monotonic()
        try:
            client.execute(
                cleanup_kc=True,
                cwd=str(work),
                env=_environment(backend, quick, folder),
            )
        except (CellExecutionError, DeadKernelError) as error:
            name = pathlib.Path(script).name
            raise BuildError(f"{name} failed on {backend}. {error}") from error
        seconds = time.monotonic() - started
    facts_cell = notebook.cells.pop()
    (value,) = [
        output["data"]["text/plain"]
        for output in facts_cell.outputs
        if output.output_type == "execute_result"
    ]
    facts = ast.literal_eval(value)
    notebook.metadata["language_info"] = {
        "file_extension": ".py",
        "name": "python",
    }
    paths = [str(folder), str(ROOT), sys.prefix, str(pathlib.Path.home())]
    return Ran(notebook, facts, seconds, paths)


def _environment(backend, quick, folder):
    environment = {
        name: value
        for name, value in os.environ.items()
        if name in _KEPT or name.startswith(_KEPT_PREFIXES)
    }
    environment |= {
        "IPYTHONDIR": str(folder / "ipython"),
        "KERAS_BACKEND": backend,
        "MPLCONFIGDIR": str(folder / "matplotlib"),
        "PYTHONPATH": str(ROOT),
    }
    if quick:
        environment["QUICK"] = "1"
        # Optimized compilation does not pay off for a few steps.
        environment.setdefault("XLA_FLAGS", _COMPILE_FAST)
    return environment
