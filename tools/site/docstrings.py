"""Griffe extensions for the docstrings shown on the site."""

import pathlib
import re
import sys

import griffe

# griffe loads an extension by its path.
sys.path.insert(0, str(pathlib.Path(__file__).parents[2]))

from tools.site import related


class CallArguments(griffe.Extension):
    """Shows `Call arguments:` as a list of arguments.

    Keras documents the arguments of `call` in the class docstring, under `Call
    arguments:`, which griffe would show as plain text.
    """

    def on_instance(self, *, obj, **_):
        """Renames the section to `Args:`, with the original title."""
        if obj.docstring:
            obj.docstring.value = re.sub(
                r"^Call arguments:$",
                "Args: Call arguments",
                obj.docstring.value,
                flags=re.MULTILINE,
            )


class NoAnnotations(griffe.Extension):
    """Shows the types of the docstrings, with shapes and units, only once."""

    def on_function_instance(self, *, func, **_):
        """Removes the annotations of a function."""
        func.returns = None
        for parameter in func.parameters:
            parameter.annotation = None


class Related(griffe.Extension):
    """Links a public name to its equation, its tests and its tutorial."""

    def on_instance(self, *, obj, **_):
        """Adds a line of links after the summary."""
        if obj.docstring and obj.path in _names():
            summary, _, rest = obj.docstring.value.partition("\n")
            line = links(_names()[obj.path])
            obj.docstring.value = f"{summary}\n\n{line}\n{rest}"


def _names():
    return {path: name for name, path in related.definitions().items()}


def links(name):
    """Returns the links of a name, Markdown of a page in `docs/api`.

    Args:
        name: str, such as `layers.Dropout`.
    """
    found = []
    if title := related.equation_of(name):
        anchor = related.anchor(title)
        found.append(f'[Equation](../equations.md#{anchor} "{title}")')
    if path := related.tests_of(name):
        found.append(f'[Tests]({related.source(path)} "{path}")')
    if section := related.taught_in(name):
        kind = "Tutorial" if section.startswith("tutorials/") else "Guide"
        title = related.title_of(section.partition("#")[0])
        found.append(f'[{kind}](../{section} "{title}")')
    # The search has these words on every page.
    return " · ".join(found) + '\n{ .related data-search-exclude="" }\n'
