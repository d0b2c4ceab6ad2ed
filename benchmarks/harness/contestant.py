"""What a plan says of a contestant."""

from typing import NamedTuple


class Contestant(NamedTuple):
    """One line of a table.

    Args:
        name: str. As the table shows it.
        backend: str. `tensorflow`, `jax` or `torch`.
        module: str. Its `prepare(case, **options)` returns a callable that
            takes a number of steps and, when they are done, returns the loss.
        options: dict, for `prepare`; default none.
        against: str. The name of a contestant that it is compared with.
        needs: str. A package that it imports and that may be missing.
        cases: tuple of str. The names of the cases that it takes part in;
            default all.
    """

    name: str
    backend: str
    module: str
    options: dict | None = None
    against: str = ""
    needs: str = ""
    cases: tuple = ()
