"""Valid calls, and the malformed calls made from them."""

import dataclasses
import functools

from tests.malformed.values import Kind


@dataclasses.dataclass(frozen=True)
class Case:
    """A malformed call.

    Attributes:
        name: str, unique: the call, the argument and the wrong value.
        call: function without arguments.
        names: set of str. One of them must be in the message.
        errors: tuple of exceptions that are as clear as ValueError.
        accepted: str. Why the call may return. Default "": it must raise.
    """

    name: str
    call: object
    names: frozenset
    errors: tuple = ()
    accepted: str = ""


@dataclasses.dataclass(frozen=True)
class Call:
    """A valid call.

    Attributes:
        name: str, unique: a public name, with a method or a variant.
        function: function, called with the arguments.
        arguments: dict of names to `Kind`.
        positional: tuple of str. Arguments passed by position.
        also: dict of labels to pairs: a dict of changed arguments, and the
            names that the message may use.
        errors: tuple of exceptions that are as clear as ValueError.
        valid: bool. Whether the valid call is made too.
    """

    name: str
    function: object
    arguments: dict
    positional: tuple = ()
    also: dict = dataclasses.field(default_factory=dict)
    errors: tuple = ()
    valid: bool = True

    def __call__(self, **changed):
        """Makes the call with some arguments replaced."""
        given = {
            name: changed.get(name, kind.valid)
            if name in changed
            else kind.valid
            for name, kind in self.arguments.items()
        }
        given |= changed
        first = [given.pop(name) for name in self.positional]
        return self.function(*first, **given)

    def cases(self):
        """Yields the malformed calls."""
        for name, kind in self.arguments.items():
            for label, value in kind.wrong.items():
                yield self._case(
                    f"{name}, {label}",
                    {name: value},
                    {name, *kind.names},
                    kind.accepted.get(label, ""),
                )
        for label, (changed, names) in self.also.items():
            if isinstance(names, str):
                names = {names}
            yield self._case(label, changed, names)

    def _case(self, label, changed, names, accepted=""):
        return Case(
            f"{self.name}: {label}",
            functools.partial(self, **changed),
            frozenset(names),
            self.errors,
            accepted,
        )


def kinds(**arguments):
    """Returns arguments; a value that is no `Kind` stays as it is."""
    return {
        name: value if isinstance(value, Kind) else Kind(value, {})
        for name, value in arguments.items()
    }
