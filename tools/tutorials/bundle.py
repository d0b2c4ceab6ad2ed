"""Packs a tutorial with all that it needs into one archive."""

import io
import zipfile

import nbformat

from tools.tutorials.run import notebook_of
from tools.tutorials.scripts import with_modules

# The first moment that a ZIP archive can name: equal files, equal archive.
_MOMENT = (1980, 1, 1, 0, 0, 0)


def pack(script):
    """Packs a script, the modules it imports and its notebook.

    Args:
        script: path of the tutorial.

    Returns:
        The bytes of a ZIP archive with one folder, named after the tutorial.
    """
    name = script.stem
    files = {
        path.name: path.read_text(encoding="utf-8")
        for path in with_modules(script)
    }
    # Without outputs: those are beside the page.
    files[f"{name}.ipynb"] = nbformat.writes(notebook_of(script)) + "\n"
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for file, text in sorted(files.items()):
            entry = zipfile.ZipInfo(f"{name}/{file}", _MOMENT)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = 0o644 << 16
            archive.writestr(entry, text)
    return target.getvalue()
