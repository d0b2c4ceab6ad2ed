"""The largest resident memory of this process."""

import contextlib
import ctypes
import pathlib
import resource
import sys


def peak_mib():
    """Returns the largest resident memory so far, in MiB."""
    with contextlib.suppress(OSError):
        # Not `getrusage`, which knows of the process that started this one.
        status = pathlib.Path("/proc/self/status").read_text()
        (line,) = (x for x in status.splitlines() if x.startswith("VmHWM:"))
        return int(line.split()[1]) / (1 << 10)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (1 << (20 if sys.platform == "darwin" else 10))


def forget_peak():
    """Starts `peak_mib` anew from what is in use now, where Linux allows it.

    What was only needed to start is given back first, or what comes later
    could hide in it.
    """
    with contextlib.suppress(AttributeError, OSError):
        # glibc only.
        ctypes.CDLL(None).malloc_trim(0)
    with contextlib.suppress(OSError):
        # man 5 proc: "5" resets the peak resident set size.
        pathlib.Path("/proc/self/clear_refs").write_text("5")
