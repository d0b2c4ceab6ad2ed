"""Warnings for deprecated names and arguments, as docs/versioning.md promises.

A decorator renames arguments, and a module's `__getattr__` renames functions
and classes:

    @renamed_arguments("0.2", "0.3", width="num_beams")
    def search(num_beams=4): ...

    __getattr__ = renamed_objects(__name__, "0.2", "0.3", Search="BeamSearch")
"""

import functools
import importlib
import inspect
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple


class Deprecation(NamedTuple):
    """A name that still works and warns.

    Args:
        owner: str. The function or module that has it, with its module.
        name: str. The deprecated name.
        since: str. The version that deprecated it, such as `"0.2"`.
        removed_in: str. The version that removes it.
    """

    owner: str
    name: str
    since: str
    removed_in: str


# All names that the imported modules deprecate, for the check of a release.
DEPRECATIONS: list[Deprecation] = []
_warned = set()


def warn_once(
    deprecation: Deprecation, advice: str, stacklevel: int = 2
) -> None:
    """Warns of a deprecated name, once per process.

    Args:
        deprecation: `Deprecation`.
        advice: str. What to do instead, a sentence without its period.
        stacklevel: int. As for `warnings.warn`: 2 is the caller. Default 2.
    """
    if deprecation in _warned:
        return
    # `FutureWarning`, because Python hides `DeprecationWarning` from users.
    warnings.warn(
        f"`{deprecation.name}` of `{deprecation.owner}` is deprecated since "
        f"keras-attn {deprecation.since} and will be removed in "
        f"{deprecation.removed_in}. {advice}.",
        FutureWarning,
        stacklevel=stacklevel + 1,
    )
    # After the warning: where a filter makes it an error, every call raises.
    _warned.add(deprecation)


def renamed_arguments(since: str, removed_in: str, /, **names: Any) -> Any:
    """Lets a function take the old names of some arguments by keyword.

    Decorate the constructor of a class to rename its arguments; configs in
    saved files then load too. Decorate `__call__`, not `call`, to rename a call
    argument of a layer: Keras compares the arguments with the signature of
    `call` before it calls it.

    Args:
        since: str. The version that renames the arguments.
        removed_in: str. The version that removes the old names.
        **names: the new name of each old name, str.

    Returns:
        A decorator. Its function has the signature of the decorated one. It
        raises TypeError if it receives an argument under both names.
    """

    def decorate(function):
        signature = inspect.signature(function)
        unknown = sorted(set(names.values()) - signature.parameters.keys())
        if unknown:
            raise ValueError(
                "`names` must map to arguments of the function. Received: "
                f"{unknown[0]}"
            )
        owner = f"{function.__module__}.{function.__qualname__}"
        known = {
            old: Deprecation(owner, old, since, removed_in) for old in names
        }
        DEPRECATIONS.extend(known.values())

        @functools.wraps(function)
        def renamed(*args, **kwargs):
            for old in names.keys() & kwargs.keys():
                new = names[old]
                by_position = signature.bind_partial(*args).arguments
                if new in kwargs or new in by_position:
                    raise TypeError(
                        f"`{new}` must be given once. Received: `{old}`, its "
                        "deprecated name, too"
                    )
                warn_once(known[old], f"Use `{new}`")
                kwargs[new] = kwargs.pop(old)
            return function(*args, **kwargs)

        # Keras reads the names of arguments without following `__wrapped__`.
        renamed.__signature__ = signature
        return renamed

    return decorate


def renamed_objects(
    module: str, since: str, removed_in: str, /, **names: Any
) -> Callable[..., Any]:
    """Makes a `__getattr__` with which a module has the old names of objects.

    Args:
        module: str. Its `__name__`.
        since: str. The version that renames the objects.
        removed_in: str. The version that removes the old names.
        **names: the new name of each old name, str.

    Returns:
        The function, to be assigned to `__getattr__` in the module.
    """
    known = {old: Deprecation(module, old, since, removed_in) for old in names}
    DEPRECATIONS.extend(known.values())

    def __getattr__(name):
        if name not in known:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        warn_once(known[name], f"Use `{names[name]}`")
        return getattr(importlib.import_module(module), names[name])

    return __getattr__


def overdue(version: str) -> list[Deprecation]:
    """Returns the deprecations that a release of this version must not have.

    Args:
        version: str of integers and periods, such as `"0.3.0"`.

    Returns:
        List of `Deprecation`.
    """
    return [
        deprecation
        for deprecation in DEPRECATIONS
        if _numbers(deprecation.removed_in) <= _numbers(version)
    ]


def _numbers(version):
    return tuple(map(int, version.split(".")))
