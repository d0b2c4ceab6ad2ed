"""Diagrams: programs that draw the SVG files in `docs/diagrams`."""

import importlib
import inspect
import pathlib

ROOT = pathlib.Path(__file__).parents[2]
FOLDER = ROOT / "docs" / "diagrams"
STYLE = ROOT / "docs" / "assets" / "css" / "diagrams.css"
# Every public function of these modules is a diagram. Its name is that of the
# file; its docstring is the title and the description.
MODULES = (
    "recurrent",
    "attention",
    "masks",
    "positions",
    "transformer",
    "decoding",
    "pretraining",
    "segments",
    "perception",
    "library",
    "home",
    "benchmarks",
)


def discover():
    """Finds all diagrams.

    Returns:
        Dict from name to function, in the order of the modules.
    """
    found = {}
    for name in MODULES:
        module = importlib.import_module(f"tools.diagrams.{name}")
        for function in vars(module).values():
            if (
                inspect.isfunction(function)
                and function.__module__ == module.__name__
                and not function.__name__.startswith("_")
            ):
                found[function.__name__] = function
    return found


def words(function):
    """Returns the title and the description of a diagram."""
    title, _, text = inspect.getdoc(function).partition("\n\n")
    return title.rstrip("."), " ".join(text.split())


def draw(function):
    """Returns the SVG of a diagram, a str."""
    return function().svg(function.__name__, *words(function))
