"""Runs malformed calls and classifies what happens.

A call is

- `clear` if it raises an error of the documented types, from the package's own
  code, that names the changed argument in backquotes and says what was
  received;
- `accepted` if it returns, and the value is one that the registry allows, with
  a reason;
- `silent` if it returns any other value;
- `obscure` if it raises anything else;
- `hang` if it does not end in time, and `memory` if it runs out of memory.
"""

import contextlib
import dataclasses
import faulthandler
import signal
import time
import traceback

try:
    import resource
except ImportError:  # Windows
    resource = None

import pathlib

import keras_attn

# Seconds after which a call is a hang, and after which the process is ended
# because the call does not return to Python.
LIMIT, LAST_LIMIT = 10, 120
# Bytes that a call may allocate.
MEMORY = 6 * 2**30
_OURS = str(pathlib.Path(keras_attn.__file__).parent)
_OUT_OF_MEMORY = (
    "not enough memory",
    "out of memory",
    "bad_alloc",
    "OOM when allocating",
    "RESOURCE_EXHAUSTED",
    "Unable to allocate",
)


@dataclasses.dataclass(frozen=True)
class Outcome:
    """What a call did.

    Attributes:
        kind: str. "clear", "accepted", "silent", "obscure", "hang" or "memory".
        message: str. The error, or the type of the result.
    """

    kind: str
    message: str


class Hang(BaseException):
    """Raised in a call that takes too long."""


def run(case):
    """Runs a `Case` and returns its `Outcome`."""
    started = time.monotonic()
    try:
        with _time_limit():
            result = case.call()
    except Hang:
        return _hang()
    except MemoryError as error:
        return Outcome("memory", _shortened(error))
    except Exception as error:
        # Code in C++ may have replaced the exception.
        late = time.monotonic() - started >= LIMIT
        return _hang() if late else _raised(case, error)
    kind = "accepted" if case.accepted else "silent"
    return Outcome(kind, f"returned {type(result).__name__}")


def _hang():
    return Outcome("hang", f"ran for more than {LIMIT} seconds")


def _raised(case, error):
    message = f"{type(error).__name__}: {_shortened(error)}"
    if any(words in str(error) for words in _OUT_OF_MEMORY):
        return Outcome("memory", message)
    *_, frame = traceback.extract_tb(error.__traceback__)
    if isinstance(error, case.errors) and _names_file(error):
        return Outcome("clear", message)
    clear = (
        isinstance(error, (ValueError, TypeError, *case.errors))
        and not isinstance(error, UnicodeError)
        and frame.filename.startswith(_OURS)
        and any(_names(error, name) for name in case.names)
        and "eceived" in _own_message(error)
    )
    place = "" if clear else f" ({_place(frame)})"
    return Outcome("clear" if clear else "obscure", message + place)


def _names_file(error):
    """Whether it is the system's own error or one of a reader, of a file."""
    if getattr(error, "filename", None):
        return True
    path = getattr(error, "path", None)
    return bool(path) and str(error).startswith(path)


def _own_message(error):
    """Returns the message without the arguments that Keras lists after it."""
    return str(error).partition("Arguments received by")[0]


def _names(error, name):
    # The name of a file, such as `config.json`, needs no quotes.
    return (name if "." in name else f"`{name}`") in _own_message(error)


def _place(frame):
    return f"{'/'.join(frame.filename.split('/')[-3:])}:{frame.lineno}"


def _shortened(error):
    text = " ".join(str(error).split())
    return text if len(text) < 260 else f"{text[:250]} ..."


@contextlib.contextmanager
def _time_limit():
    """Raises `Hang` after `LIMIT` seconds, where the system has signals."""
    if not hasattr(signal, "setitimer"):
        yield
        return

    def stop(number, frame):
        raise Hang

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, LIMIT)
    faulthandler.dump_traceback_later(LAST_LIMIT, exit=True)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        faulthandler.cancel_dump_traceback_later()


@contextlib.contextmanager
def memory_limit():
    """Limits the memory of the process to `MEMORY` more than it has now."""
    status = pathlib.Path("/proc/self/statm")
    if resource is None or not status.exists():
        yield
        return
    pages = int(status.read_text(encoding="ascii").split()[0])
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    limit = pages * resource.getpagesize() + MEMORY
    if hard != resource.RLIM_INFINITY:
        limit = min(limit, hard)
    resource.setrlimit(resource.RLIMIT_AS, (limit, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
