"""Cleans the outputs of a notebook."""

import base64
import re

import nbformat

from tools.tutorials.failure import BuildError
from tools.tutorials.picture import shrink

_ESCAPES = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]")
# Size limit of an HTML output, in bytes: it is loaded with the page.
MOST_HTML = 300_000
# Not allowed in a page; a model that generates bytes may print them.
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")


def tidy(notebook, paths):
    """Cleans the outputs of a notebook, in place.

    Stderr is dropped. Text is kept as a terminal would finally show it, so that
    only the last state of a progress bar remains. HTML is kept in cells with an
    `alt` text.

    Args:
        notebook: an executed `nbformat.NotebookNode`.
        paths: list of str. Paths of this machine, which no output may show.

    Raises:
        BuildError: an output shows such a path, or has a type that a page
            cannot show.
    """
    for number, cell in enumerate(notebook.cells):
        if cell.cell_type != "code":
            continue
        # Other outputs also have HTML, such as a model's summary.
        html = bool(cell.metadata.get("alt"))
        cell.outputs = _tidied(cell.outputs, number, html)
        for output in cell.outputs:
            text = output.get("text") or "".join(
                output["data"].get(kind, "")
                for kind in ("text/plain", "text/html")
            )
            for path in paths:
                if path in text:
                    raise BuildError(
                        f"Cell {number} shows a path of this machine, {path}: "
                        f"{text.strip()}"
                    )


def final_text(text):
    """Returns what a terminal shows after a text was printed.

    Args:
        text: str, with carriage returns, backspaces and escape sequences.

    Returns:
        Str without any of these and without trailing spaces, with a replacement
        character for every other control character.
    """
    lines = _ESCAPES.sub("", text).split("\n")
    final = "\n".join(_final_line(line).rstrip() for line in lines)
    return _CONTROLS.sub("\ufffd", final)


def _final_line(line):
    shown, at = [], 0
    for character in line:
        if character == "\r":
            at = 0
        elif character == "\b":
            at = max(0, at - 1)
        else:
            shown[at : at + 1] = [character]
            at += 1
    return "".join(shown)


def _tidied(outputs, number, html):
    kept = []
    for output in outputs:
        if output.output_type == "stream":
            if output.name == "stderr":
                continue
            if kept and kept[-1].output_type == "stream":
                kept[-1].text += output.text
            else:
                kept.append(output)
        else:
            kept.append(_result(output, number, html))
    for output in kept:
        if output.output_type == "stream":
            output.text = final_text(output.text)
    return [output for output in kept if _shows_something(output)]


def _result(output, number, html):
    """Returns a result as an image, as HTML, or else as text."""
    kinds = "image/png", *(["text/html"] if html else []), "text/plain"
    for kind in kinds:
        if kind in output.get("data", {}):
            data = output.data[kind]
            if kind == "image/png":
                picture = shrink(base64.b64decode(data))
                data = base64.b64encode(picture).decode("ascii")
            elif kind == "text/html":
                _check_html(data, number)
            else:
                data = final_text(data)
            return nbformat.v4.new_output("display_data", {kind: data})
    raise BuildError(
        f"Cell {number} has an output that is neither text nor a PNG image, "
        "nor HTML with an `alt` text: "
        f"{sorted(output.get('data', {})) or output.output_type}"
    )


def _check_html(fragment, number):
    size = len(fragment.encode("utf-8"))
    if size > MOST_HTML:
        raise BuildError(
            f"Cell {number} shows {size:,} bytes of HTML; the limit is "
            f"{MOST_HTML:,}. Show less of it, or save it as a file."
        )
    # In Markdown, an empty line ends an HTML block.
    if re.search(r"\n[ \t]*\n", fragment.strip()):
        raise BuildError(
            f"Cell {number} shows HTML with an empty line in it, which ends an "
            "HTML block in Markdown."
        )


def _shows_something(output):
    if output.output_type == "stream":
        return bool(output.text.strip())
    return any(output.data.values())
