"""Outputs of a notebook as a reader wants them."""

import base64
import re

import nbformat

from tools.tutorials.failure import BuildError
from tools.tutorials.picture import shrink

_ESCAPES = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]")
# No page may hold them; a model that writes bytes may print them.
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")


def tidy(notebook, paths):
    """Cleans the outputs of a notebook, in place.

    What went to stderr is dropped: it is the log's. Text is what a terminal
    would show in the end, so that a progress bar is its last state only.

    Args:
        notebook: `nbformat.NotebookNode` that has run.
        paths: list of str. Paths of this machine, which no output may show.

    Raises:
        BuildError: an output shows such a path, or is of a kind that a page
            cannot show.
    """
    for number, cell in enumerate(notebook.cells):
        if cell.cell_type != "code":
            continue
        cell.outputs = _tidied(cell.outputs, number)
        for output in cell.outputs:
            text = output.get("text") or output["data"].get("text/plain", "")
            for path in paths:
                if path in text:
                    raise BuildError(
                        f"Cell {number} shows a path of this machine, {path}: "
                        f"{text.strip()}"
                    )


def final_text(text):
    """Returns what a terminal shows after a text was printed to it.

    Args:
        text: str, with carriage returns, backspaces and escape sequences.

    Returns:
        Str without any of them, without spaces at the end of a line, and with
        a replacement character for every other control character.
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


def _tidied(outputs, number):
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
            kept.append(_result(output, number))
    for output in kept:
        if output.output_type == "stream":
            output.text = final_text(output.text)
    return [output for output in kept if _shows_something(output)]


def _result(output, number):
    """A result as a PNG picture or, where it has none, as text."""
    for kind in ("image/png", "text/plain"):
        if kind in output.get("data", {}):
            data = output.data[kind]
            if kind == "image/png":
                picture = shrink(base64.b64decode(data))
                data = base64.b64encode(picture).decode("ascii")
            else:
                data = final_text(data)
            return nbformat.v4.new_output("display_data", {kind: data})
    raise BuildError(
        f"Cell {number} has an output that is neither text nor a PNG picture: "
        f"{sorted(output.get('data', {})) or output.output_type}"
    )


def _shows_something(output):
    if output.output_type == "stream":
        return bool(output.text.strip())
    return bool(output.data.get("image/png") or output.data["text/plain"])
