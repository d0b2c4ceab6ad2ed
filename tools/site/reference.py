"""Hook of MkDocs: links the reference with tutorials and equations.

A page of the reference gets a table of its names, a tutorial the list of names
that it teaches, and the names on the page of equations become links. The links
back are in the docstrings: see `docstrings.py`.
"""

import pathlib
import posixpath
import re
import sys

# MkDocs loads a hook by its path.
sys.path.insert(0, str(pathlib.Path(__file__).parents[2]))

from tools.site import related

_ENTRY = re.compile(r"^::: (\S+)$", re.MULTILINE)


def on_page_markdown(markdown, page, config, **_):
    """Adds the links to a page."""
    uri = page.file.src_uri
    if _ENTRY.search(markdown):
        handler = config.plugins["mkdocstrings"].get_handler("python")
        return with_table(markdown, lambda path: summary(handler, path))
    if uri in related.tutorials():
        return with_names(markdown, uri)
    if uri == "equations.md":
        return with_anchors(markdown)
    return markdown


def summary(handler, path):
    """Returns the first line of a docstring.

    Args:
        handler: of mkdocstrings. It keeps what it reads for the entries.
        path: str, the dotted path of an object.
    """
    docstring = handler.collect(path, handler.get_options({})).docstring
    return docstring.value.partition("\n")[0] if docstring else ""


def with_table(markdown, summary):
    """Puts a table of the names between the introduction and the entries.

    Args:
        markdown: str. A page of the reference.
        summary: function that returns the summary of a dotted path.

    Returns:
        Markdown.
    """
    rows = ["| name | summary |", "| --- | --- |"]
    for path in _ENTRY.findall(markdown):
        name = path.rpartition(".")[2]
        text = summary(path).replace("|", "\\|")
        rows.append(f"| [`{name}`](#{path}) | {text} |")
    start = re.search(r"^(?:## |::: )", markdown, re.MULTILINE).start()
    table = "\n".join(rows)
    return f"{markdown[:start]}{table}\n\n{markdown[start:]}"


def with_names(markdown, uri):
    """Adds the names that a tutorial teaches, and the others that it uses.

    Args:
        markdown: str. The tutorial.
        uri: str. Its path, relative to `docs`.

    Returns:
        Markdown.
    """
    taught = [
        name
        for name in related.definitions()
        if (related.taught_in(name) or "").partition("#")[0] == uri
    ]
    used = sorted(related.tutorials()[uri].keys() - {*taught})
    parts = [
        f"{verb}: {', '.join(_link(name, uri) for name in names)}."
        for verb, names in (("Taught here", taught), ("Also used", used))
        if names
    ]
    section = "\n\n".join(["## Reference", *parts])
    start = markdown.index("\n## Exercises\n")
    return f"{markdown[:start]}\n{section}\n{markdown[start:]}"


def with_anchors(markdown):
    """Gives each equation an anchor, and turns the names into links."""
    for title, names in related.equations(markdown).items():
        anchor = related.anchor(title)
        links = "<br>".join(_link(name, "equations.md") for name in names)
        code = ", ".join(f"`{name}`" for name in names)
        markdown = markdown.replace(
            f"| {title}<br>{code} |",
            f'| <span id="{anchor}">{title}</span><br>{links} |',
        )
    return markdown


def _link(name, uri):
    target = posixpath.relpath(related.entries()[name], posixpath.dirname(uri))
    return f"[`{name.partition('.')[2]}`]({target})"
