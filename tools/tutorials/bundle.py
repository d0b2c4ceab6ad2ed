"""Packs a tutorial and its dependencies into one archive."""

import io
import zipfile

import nbformat

from tools.tutorials.run import notebook_of
from tools.tutorials.scripts import with_modules

# The earliest timestamp of the ZIP format: equal files give equal archives.
_MOMENT = (1980, 1, 1, 0, 0, 0)


_README = """\
{name}: to run at home

It needs keras-attn. In a checkout of it:

    pip install ".[torch,examples]" notebook

Then, in this folder, one of

    KERAS_BACKEND=torch jupyter notebook {name}.ipynb
    KERAS_BACKEND=torch python {name}.py

Without KERAS_BACKEND, Keras uses TensorFlow. The settings are environment
variables; the module whose name ends in `settings` lists them. QUICK=1 takes a
few steps, to see that it runs.
"""


def pack(script, pictures):
    """Packs a script, the modules it imports and its notebook.

    Args:
        script: path of the tutorial.
        pictures: dict from file name to bytes, the figures of the page. Those
            shown in Markdown cells are included, because they appear before
            the code that draws them.

    Returns:
        The bytes of a ZIP archive with one folder, named after the tutorial.
    """
    name = script.stem
    files = {
        path.name: path.read_text(encoding="utf-8")
        for path in with_modules(script)
    }
    notebook = notebook_of(script)
    # Without outputs, which are in the notebook next to the page.
    files[f"{name}.ipynb"] = nbformat.writes(notebook) + "\n"
    files["README.txt"] = _README.format(name=name)
    markdown = [c.source for c in notebook.cells if c.cell_type == "markdown"]
    files |= {
        file: content
        for file, content in pictures.items()
        if any(f"]({file})" in text for text in markdown)
    }
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for file, text in sorted(files.items()):
            entry = zipfile.ZipInfo(f"{name}/{file}", _MOMENT)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = 0o644 << 16
            archive.writestr(entry, text)
    return target.getvalue()
