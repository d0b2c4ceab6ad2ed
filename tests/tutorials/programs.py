"""Runs tutorials as programs, with settings in the environment."""

import pathlib
import runpy

import pytest

_FOLDER = pathlib.Path(__file__).parents[2] / "tutorials"


def runner(name, settings):
    """Returns a function that runs a tutorial.

    Args:
        name: str, of the script.
        settings: NamedTuple class. Its fields that are not passed to a run are
            removed from the environment.

    Returns:
        Function of a `pytest.MonkeyPatch` and settings in capitals, which
        returns the global variables of the script.
    """

    def run(monkeypatch, **values):
        for field in settings._fields:
            monkeypatch.delenv(field.upper(), raising=False)
        for field, value in values.items():
            monkeypatch.setenv(field, str(value))
        path = str(_FOLDER / f"{name}.py")
        return runpy.run_path(path, run_name="__main__")

    return run


def printed(run, **values):
    """Returns what a program prints, for fixtures that cannot use `capsys`."""
    lines = []
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr(
            "builtins.print",
            lambda *args, **_: lines.append(" ".join(map(str, args))),
        )
        run(monkeypatch, **values)
    return "\n".join(lines)


def complaint(run, monkeypatch, capsys, **values):
    """Returns the one-line error message of a program that exits with 2."""
    with pytest.raises(SystemExit) as leaving:
        run(monkeypatch, **values)
    assert leaving.value.code == 2
    said = capsys.readouterr().err
    assert len(said.splitlines()) == 1
    return said
