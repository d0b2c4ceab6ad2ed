"""Settings of a program, read from the environment, where make puts them."""

import math
import os
import pathlib
import sys


def read(base, corpus, quick, zeros=(), environment=os.environ):
    """Reads the settings of a program.

    Args:
        base: NamedTuple of what is set by default, `data` and `quick` among
            them. Each setting is of the kind of its default: bool, str, path,
            int or float.
        corpus: dict of what is set otherwise where `data` are given.
        quick: dict of what is set otherwise where `quick` is.
        zeros: names of the numbers that may be 0.
        environment: mapping of upper-case names to strings.

    Returns:
        A NamedTuple like `base`.

    Raises:
        ValueError: a value that is not a positive number where one is needed.
    """
    given = {
        name: environment[name.upper()].strip()
        for name in base._fields
        if environment.get(name.upper(), "").strip()
    }
    if "data" in given:
        base = base._replace(**corpus)
    if _truth(given.get("quick", "0")):
        base = base._replace(**quick)
    values = {
        name: _value(name, text, type(getattr(base, name)), name in zeros)
        for name, text in given.items()
    }
    return base._replace(**values)


def identity(run, *free):
    """Returns the settings that a run must share with one it goes on from.

    Args:
        run: NamedTuple of settings.
        *free: names of those that may differ, beside where files lie.

    Returns:
        Dict.
    """
    free = {"out", "model", "input", "fresh", *free}
    return {
        name: value for name, value in run._asdict().items() if name not in free
    }


def explain_and_leave(program, error):
    """Prints one line about bad input and leaves with status 2."""
    print(f"{program}: {error}", file=sys.stderr)
    sys.exit(2)


def _value(name, text, kind, may_be_zero):
    if kind is bool:
        return _truth(text)
    if kind is str or issubclass(kind, pathlib.PurePath):
        return kind(text)
    try:
        value = kind(text)
    except ValueError:
        value = -1
    if not 0 <= value < math.inf or (value == 0 and not may_be_zero):
        raise ValueError(
            f"{name.upper()} must be a positive number. "
            f"Received: {name.upper()}={text}"
        )
    return value


def _truth(text):
    return text not in ("0", "no", "false")
