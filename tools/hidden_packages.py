"""Hides installed packages from imports, as if they were not installed.

With `ALONE=1` in the environment, the tests hide the other backends, which
reproduces an installation with a single backend.
"""

import os
import sys

BACKENDS = ("jax", "jaxlib", "tensorflow", "tensorflow_text", "torch")
_NEEDED = {
    "jax": {"jax", "jaxlib"},
    "tensorflow": {"tensorflow", "tensorflow_text"},
    "torch": {"torch"},
}


class _HidingFinder:
    """A module finder that does not find some packages."""

    def __init__(self, finder, packages):
        self._finder, self._packages = finder, packages

    def __getattr__(self, name):
        return getattr(self._finder, name)

    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in self._packages:
            return None
        return self._finder.find_spec(name, path, target)


def hide(packages):
    """Makes every later import of these packages fail.

    Args:
        packages: iterable of str, names of top-level packages.
    """
    packages = frozenset(packages)
    sys.meta_path[:] = [
        _HidingFinder(finder, packages) for finder in sys.meta_path
    ]


def alone():
    """Returns whether ALONE is set: each backend is the only one."""
    return os.environ.get("ALONE", "0") not in ("", "0")


def hide_other_backends():
    """Hides the backends other than KERAS_BACKEND where ALONE is set."""
    if alone():
        hide(set(BACKENDS) - _NEEDED[os.environ["KERAS_BACKEND"]])
