"""Generated lists of the tutorials: their exercises, and the index."""

import re

from tools.tutorials.build import PAGES
from tools.tutorials.run import notebook_of
from tools.tutorials.scripts import FOLDER, discover

EXERCISES = PAGES / "exercises.md"
INDEX = FOLDER / "README.md"
FIRST = "why_attention"
_EXERCISES_START = """\
# Exercises

The questions of all tutorials, in the order of the course. A title leads to the
answers on its page. The code in an answer runs after the code of its page.
"""
_INDEX_START = """\
# Tutorials

A course, in this order. Each tutorial is one file and needs no other: copy it
into an empty folder, or open it as a notebook with jupytext. The
[pages](../docs/tutorials/index.md) show the outputs and figures of a run.

"""


def course(scripts):
    """Orders tutorials by their links to the next one.

    Args:
        scripts: dict from name to path.

    Returns:
        List of names.

    Raises:
        ValueError: the links do not lead through all tutorials.
    """
    names, name = [], FIRST
    while name in scripts and name not in names:
        names.append(name)
        _, _, link = prose(scripts[name]).rpartition("**Next**")
        name = "".join(re.findall(r"\.\./(\w+)/index\.md", link)[:1])
    if len(names) < len(scripts):
        raise ValueError(
            "No tutorial has a link at its end to: "
            + ", ".join(sorted(scripts.keys() - {*names}))
        )
    return names


def prose(script):
    """Returns the text of a tutorial, Markdown."""
    cells = notebook_of(script).cells
    texts = [cell.source for cell in cells if cell.cell_type == "markdown"]
    return "\n\n".join(texts)


def questions(script):
    """Lists the questions of a tutorial, Markdown, without their answers."""
    _, _, text = prose(script).partition("\n## Exercises\n")
    text, _, _ = text.rpartition("**Next**")
    text = re.sub(r"<details.*?</details>", "", text, flags=re.DOTALL)
    # The list lies one folder above the pages.
    text = text.replace("](../", "](")
    text = text.replace("](#", f"]({script.stem}/index.md#")
    parts = re.split(r"^(?=\*\*\d+\.\*\*)", text, flags=re.MULTILINE)
    return [part.strip() for part in parts[1:]]


def exercises(scripts):
    """Renders the list of exercises.

    Args:
        scripts: dict from name to path.

    Returns:
        Markdown.
    """
    parts = [_EXERCISES_START]
    for name in course(scripts):
        title = _title(scripts[name])
        parts.append(f"## [{title}]({name}/index.md#exercises)\n")
        parts += [f"{question}\n" for question in questions(scripts[name])]
    return "\n".join(parts)


def index(scripts):
    """Renders the index of the folder of tutorials.

    Args:
        scripts: dict from name to path.

    Returns:
        Markdown.
    """
    return _INDEX_START + "".join(
        f"{number}. [{_title(scripts[name])}]({name}.py)\n"
        for number, name in enumerate(course(scripts), 1)
    )


def write():
    """Writes both; returns their paths."""
    scripts = discover()
    EXERCISES.write_text(exercises(scripts), encoding="utf-8")
    INDEX.write_text(index(scripts), encoding="utf-8")
    return EXERCISES, INDEX


def _title(script):
    return prose(script).partition("\n")[0].removeprefix("# ")
