"""Renders an executed notebook as Markdown and image files."""

import base64
import html
import re
import textwrap

from tools.tutorials.failure import BuildError
from tools.tutorials.run import NOT_ON_PAGE
from tools.tutorials.stamp import header

# Jupyter's tag of cells whose code is folded.
_FOLDED = "hide-input"


def render(notebook, stamp, name):
    """Renders a page.

    Args:
        notebook: `nbformat.NotebookNode` with tidy outputs.
        stamp: dict, the stamp of the run.
        name: str. Name of the tutorial.

    Returns:
        The Markdown, and a dict from file name to the bytes of an image.

    Raises:
        BuildError: the first cell has no title, or a cell that shows an image
            or HTML has no `alt` text.
    """
    parts, pictures = [], {}
    for number, cell in enumerate(notebook.cells):
        if NOT_ON_PAGE in cell.metadata.get("tags", []):
            continue
        source = cell.source.strip()
        if cell.cell_type == "markdown":
            parts.append(source)
            continue
        code = _fenced("python", source)
        if _FOLDED in cell.metadata.get("tags", []):
            code = textwrap.indent(code, "    ")
            code = f'??? example "Plotting code"\n\n{code}'
        parts.append(code)
        for output in cell.outputs:
            data = output.get("data", {})
            if "image/png" in data:
                file = f"{name}-{len(pictures) + 1}.png"
                pictures[file] = base64.b64decode(data["image/png"])
                parts.append(f"![{_alt(cell, number)}]({file})")
            elif "text/html" in data:
                label = html.escape(_alt(cell, number))
                parts.append(
                    f'<div class="view" role="figure" aria-label="{label}">\n'
                    f"{data['text/html'].strip()}\n</div>"
                )
            else:
                text = output.get("text") or data["text/plain"]
                parts.append(_fenced("{.text .output}", text.strip("\n")))
    # Notebooks draw two pixels for each pixel of a page ("retina").
    for file, image in pictures.items():
        width = int.from_bytes(image[16:20], "big") // 2
        sized = f'({file}){{ width="{width}" }}'
        parts = [part.replace(f"]({file})", f"]{sized}") for part in parts]
    title, _, rest = parts[0].partition("\n") if parts else ("", "", "")
    if not title.startswith("# "):
        raise BuildError(
            f"{name} must start with a Markdown cell whose first line is a "
            f"title, `# ...`. Received: {title!r}"
        )
    parts[:1] = [title, header(stamp, name).strip(), rest.strip()]
    return "\n\n".join(filter(None, parts)) + "\n", pictures


def _fenced(language, text):
    longest = max(map(len, re.findall(r"`{3,}", text)), default=2)
    fence = "`" * (longest + 1)
    return f"{fence}{language}\n{text}\n{fence}"


def _alt(cell, number):
    alt = cell.metadata.get("alt")
    if not alt:
        raise BuildError(
            f"Cell {number} shows an image or HTML and needs a description "
            f'after its `# %%`, as alt="...". It starts: {cell.source[:60]!r}'
        )
    return alt
