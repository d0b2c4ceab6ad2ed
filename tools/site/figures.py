"""Hook of MkDocs: makes room for the interactive figures.

A page names one where it belongs: `<!-- figure: warmup -->`. Readers without
JavaScript, and notebooks, have the pictures around it.
"""

import pathlib
import posixpath
import re

from mkdocs.exceptions import PluginError

_MARK = re.compile(r"<!-- figure: (\w+) -->")
_SCRIPTS = "assets/js"


def on_post_page(output, page, config):
    """Replaces the marks by empty boxes, which a script fills."""
    folder = pathlib.Path(config.docs_dir, _SCRIPTS, "figures")
    names = _MARK.findall(output)
    for name in names:
        if not (folder / f"{name}.js").exists():
            raise PluginError(f"{page.url} names no figure: {name}")
    if not names:
        return output
    start = posixpath.dirname(page.url) or "."
    script = posixpath.relpath(f"{_SCRIPTS}/figures.js", start)
    output = _MARK.sub(_box, output)
    return output.replace(
        "</body>", f'<script src="{script}"></script>\n</body>'
    )


def _box(match):
    name = match[1]
    label = name.replace("_", " ")
    return (
        f'<div class="figure" data-figure="{name}" role="group" '
        f'aria-label="Interactive figure: {label}"></div>'
    )
