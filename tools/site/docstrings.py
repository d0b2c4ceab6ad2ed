"""Tells mkdocstrings of the one section of ours that it does not know.

Keras documents what `call` takes in the class, under `Call arguments:`. Without
this file the pages show it as running text.
"""

import re

import griffe


class CallArguments(griffe.Extension):
    """Shows `Call arguments:` as what it is: a list of arguments."""

    def on_instance(self, *, obj, **_):
        """Gives the section a name that the parser knows, and its title."""
        if obj.docstring:
            obj.docstring.value = re.sub(
                r"^Call arguments:$",
                "Args: Call arguments",
                obj.docstring.value,
                flags=re.MULTILINE,
            )
