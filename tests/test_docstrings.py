"""Docstrings: examples run, and every argument is documented."""

import doctest
import importlib
import inspect
import pathlib
import re

import keras
import numpy as np
import pytest

import keras_attn
from tests.helpers.cases import spread
from tools.hidden_packages import BACKENDS

ROOT = pathlib.Path(__file__).parents[1]
MODULES = sorted(
    ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(
        ".__init__"
    )
    for path in (ROOT / "keras_attn").rglob("*.py")
)


def imported(name):
    """The module, or None if it needs a backend that is not installed."""
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name not in BACKENDS:
            raise
        return None


# `backend` is not public: its examples run, but it need not have any.
PUBLIC_MODULES = [
    name
    for name in MODULES
    if hasattr(imported(name), "__all__")
    and name not in ("keras_attn", "keras_attn.backend")
]
OPTIONS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS


def public_objects():
    """Lists every class and function in any `__all__`, once."""
    found = {}
    for name in PUBLIC_MODULES:
        module = importlib.import_module(name)
        for public in module.__all__:
            value = getattr(module, public)
            if inspect.isclass(value) or inspect.isroutine(value):
                found.setdefault(
                    id(value), pytest.param(value, id=f"{name}.{public}")
                )
    return list(found.values())


@pytest.mark.parametrize("name", spread(MODULES))
def test_module_examples_run(name):
    module = imported(name)
    if module is None:
        pytest.skip("needs a backend that is not installed")
    names = {"keras": keras, "keras_attn": keras_attn, "np": np}
    runner = doctest.DocTestRunner(optionflags=OPTIONS)
    report = []
    for test in doctest.DocTestFinder().find(module, name, extraglobs=names):
        runner.run(test, out=report.append)
    assert runner.failures == 0, "".join(report)


def arguments(value):
    """Returns the argument names of a class or function."""
    if inspect.isclass(value) and value.__init__ is object.__init__:
        if value.__new__ is object.__new__:
            return set()
    # `**kwargs` are passed to Keras, which documents them.
    kinds = (inspect.Parameter.VAR_KEYWORD,)
    return {
        parameter.name
        for parameter in inspect.signature(value).parameters.values()
        if parameter.kind not in kinds
    }


def documented(docstring):
    """Returns the names in the `Args:` or `Attributes:` of a docstring.

    A line such as `width, height: int.` has two.
    """
    sections = re.split(r"^(\w[\w ]*):$", docstring, flags=re.MULTILINE)
    names = set()
    for title, body in zip(sections[1::2], sections[2::2], strict=True):
        if title in ("Args", "Attributes"):
            for line in re.findall(r"^    (\S[^:]*):", body, re.MULTILINE):
                names |= {name.strip("*` ") for name in line.split(",")}
    return names - {"kwargs"}


@pytest.mark.parametrize("value", public_objects())
def test_a_public_docstring_has_examples(value):
    docstring = inspect.getdoc(value) or ""
    # Indented, or the site shows them as plain text.
    assert "\nExamples:\n    " in docstring
    assert ">>> " in docstring.partition("\nExamples:\n")[2]


@pytest.mark.parametrize("value", public_objects())
def test_a_public_docstring_names_the_arguments(value):
    assert documented(inspect.getdoc(value) or "") == arguments(value)


def test_documented_parses_docstrings():
    docstring = """Adds.

    Args:
        x: float. It may say `a: b`,
            and go on: here.
        width, height: int >= 1.
        *rest: more of them.
        **kwargs: as for `keras.Layer`.

    Returns:
        sum: a float.

    Examples:
    >>> 1
    1
    """
    expected = {"x", "width", "height", "rest"}
    assert documented(inspect.cleandoc(docstring)) == expected
    assert documented("No sections.") == set()


def test_arguments_are_those_of_the_caller():
    class Layer:
        def __init__(self, width, *, height=1, **kwargs):
            pass

    assert arguments(Layer) == {"width", "height"}
    assert arguments(lambda x, *rest: x) == {"x", "rest"}
    assert arguments(type("Bare", (), {})) == set()
