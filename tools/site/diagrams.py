"""Hook of MkDocs: puts the diagrams into the pages.

An image cannot follow the color switch of the site, and its links cannot be
followed. Without the hook, pages show the diagrams as images.
"""

import pathlib
import posixpath
import re

from mkdocs.exceptions import PluginError

_IMAGE = re.compile(r'<img [^>]*src="[^"]*diagrams/(\w+)\.svg"[^>]*>')


def on_post_page(output, page, config):
    """Replaces the images of diagrams by the diagrams, at last.

    The search index is made before, so it has no texts of diagrams.
    """
    folder = pathlib.Path(config.docs_dir, "diagrams")
    names = _IMAGE.findall(output)
    for name in names:
        if names.count(name) > 1:
            # The ids in it would not be unique.
            raise PluginError(f"{page.url} shows {name}.svg more than once")
    return _IMAGE.sub(
        lambda match: inline(folder / f"{match[1]}.svg", page.url), output
    )


def inline(path, url):
    """Returns a diagram as a part of a page.

    Args:
        path: path of the SVG file.
        url: str. The page, relative to the site.

    Returns:
        Str, without the style sheet of the file; links start from the page.
    """
    svg = path.read_text(encoding="utf-8")
    svg = re.sub(r"<style>.*?</style>\n", "", svg, flags=re.DOTALL)
    start = posixpath.dirname(url) or "."

    def relative(match):
        target = posixpath.join("diagrams", match[1])
        return f'href="{posixpath.relpath(target, start)}"'

    return re.sub(r'href="([^"]*)"', relative, svg)
