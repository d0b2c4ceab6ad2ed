"""A griffe extension for the `Call arguments:` section of docstrings.

Keras documents the arguments of `call` in the class docstring, under `Call
arguments:`, which griffe would show as plain text.
"""

import re

import griffe


class CallArguments(griffe.Extension):
    """Shows `Call arguments:` as a list of arguments."""

    def on_instance(self, *, obj, **_):
        """Renames the section to `Args:`, with the original title."""
        if obj.docstring:
            obj.docstring.value = re.sub(
                r"^Call arguments:$",
                "Args: Call arguments",
                obj.docstring.value,
                flags=re.MULTILINE,
            )
