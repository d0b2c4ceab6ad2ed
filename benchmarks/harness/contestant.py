"""The description of a contestant in a plan."""

from typing import NamedTuple


class Contestant(NamedTuple):
    """One row of a table.

    Args:
        name: str. Its name in the table.
        backend: str. `tensorflow`, `jax` or `torch`.
        module: str. Its `prepare(case, **options)` returns a callable that
            takes a number of steps, runs them and returns the loss.
        options: dict of arguments of `prepare`. Default: none.
        against: str. The name of the contestant it is compared with.
        needs: str. An optional package that it imports.
        cases: tuple of str. The names of the cases that it takes part in.
            Default: all.
    """

    name: str
    backend: str
    module: str
    options: dict | None = None
    against: str = ""
    needs: str = ""
    cases: tuple = ()
