"""Every tutorial runs with QUICK=1, and one of them becomes a complete page.

`test_tutorial_pages` checks that each committed page comes from a full run.
"""

import ast
import os
import pathlib
import re
import runpy
import shutil
import textwrap

import keras
import matplotlib.pyplot
import nbformat
import pytest

from tools.site.downloads import downloads
from tools.tutorials import lists
from tools.tutorials import stamp as stamps
from tools.tutorials.build import build
from tools.tutorials.run import NOT_ON_PAGE, notebook_of
from tools.tutorials.scripts import discover

pytestmark = pytest.mark.one_backend

ROOT = pathlib.Path(__file__).parents[2]
SCRIPTS = discover()
# The others run on PyTorch, which needs no compilation. `make tutorials` with
# BACKENDS runs all of them on each.
NOT_ON_TORCH = {
    "tensorflow": ("hard_attention", "multi_head", "why_attention"),
    "jax": ("masks", "positions", "word_senses"),
}
BACKEND = keras.backend.backend()


def marked(name):
    """Returns a tutorial's name, with the mark of its backend."""
    backends = [b for b, names in NOT_ON_TORCH.items() if name in names]
    mark = pytest.mark.one_backend(*(backends or ["torch"]))
    return pytest.param(name, marks=mark)


@pytest.mark.parametrize("name", [marked(name) for name in SCRIPTS])
def test_quick_run_in_an_empty_folder(
    name, tmp_path, monkeypatch, capsys, record_property
):
    for variable in set(os.environ) - {"HOME", "PATH"}:
        if variable.isupper() and variable.isalpha():
            monkeypatch.delenv(variable)
    monkeypatch.setenv("QUICK", "1")
    monkeypatch.chdir(tmp_path)
    script = shutil.copy(SCRIPTS[name], tmp_path)
    # Its own assertions check the results.
    variables = runpy.run_path(script, run_name="__main__")
    matplotlib.pyplot.close("all")
    line = f"Keras {keras.__version__} on {BACKEND}"
    assert line in capsys.readouterr().out, f"the setup must print {line!r}"
    for code in answers(SCRIPTS[name]):
        exec(compile(code, f"an answer of {name}", "exec"), variables)
    total, skipped = assertions(SCRIPTS[name])
    record_property("assertions", f"{name} {total} {skipped}")
    assert skipped < total, "an assertion must run with QUICK=1, too"


def answers(script):
    """Returns the code in the answers to the exercises."""
    _, _, text = lists.prose(script).partition("\n## Exercises\n")
    return re.findall(r"^```python\n(.*?)^```", text, re.DOTALL | re.MULTILINE)


def assertions(script):
    """Counts assertions, and those of trained quality, not run with QUICK."""
    tree = ast.parse(script.read_text("utf-8"))
    found = {node for node in ast.walk(tree) if is_assertion(node)}
    skipped = {
        inner
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and ast.unparse(node.test) == "not QUICK"
        for line in node.body
        for inner in ast.walk(line)
        if is_assertion(inner)
    }
    return len(found), len(skipped)


def is_assertion(node):
    """Returns whether a node asserts something."""
    if isinstance(node, ast.Call):
        return ast.unparse(node.func).startswith("np.testing.assert_")
    return isinstance(node, ast.Assert)


def test_quick_run_builds_a_complete_page(tmp_path):
    """Of a tutorial with folded code, a diagram, pictures and outputs."""
    name = "hard_attention"
    script = SCRIPTS[name]
    # As in docs: a page shows diagrams of a neighboring folder.
    (tmp_path / "diagrams").symlink_to(ROOT / "docs" / "diagrams")
    pages = tmp_path / "tutorials"
    pages.mkdir()
    page = build(script, BACKEND, quick=True, pages=pages)
    text, folder = page.read_text(encoding="utf-8"), page.parent
    stamp = stamps.read(folder)
    assert stamp["quick"] and stamp["backend"] == BACKEND
    assert not stamps.has_changed(script, stamp)
    parts = []
    for cell in notebook_of(script).cells:
        tags, part = cell.metadata.get("tags", []), cell.source.strip()
        if NOT_ON_PAGE not in tags:
            # Folded code is indented.
            folded = "hide-input" in tags
            parts.append(textwrap.indent(part, "    ") if folded else part)
    first, *others = parts
    text = re.sub(r'\{ width="\d+" \}', "", text)
    # The box with the stamp comes after the title.
    for part in [*first.split("\n", 1), *others]:
        assert part.strip() in text
    assert "{.text .output}" in text
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f]", text)
    pictures = re.findall(r"!\[.+\]\((.+)\)", text)
    assert pictures
    for picture in pictures:
        assert (folder / picture).stat().st_size > 1000
    notebook = nbformat.reads(
        downloads(script, folder)[f"{name}.ipynb"].decode(), as_version=4
    )
    nbformat.validate(notebook)
    assert all(
        output.output_type != "error" and output.get("name") != "stderr"
        for cell in notebook.cells
        for output in cell.get("outputs", [])
    )
