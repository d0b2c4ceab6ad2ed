"""Peak resident memory of this process."""

import contextlib
import ctypes
import pathlib
import resource
import sys


def peak_mib():
    """Returns the peak resident memory so far, in MiB."""
    with contextlib.suppress(OSError):
        # Not `getrusage`, whose value is inherited from the parent process.
        status = pathlib.Path("/proc/self/status").read_text()
        (line,) = (x for x in status.splitlines() if x.startswith("VmHWM:"))
        return int(line.split()[1]) / (1 << 10)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (1 << (20 if sys.platform == "darwin" else 10))


def forget_peak():
    """Resets `peak_mib` to the memory in use now, where Linux allows it.

    Free memory is returned to the system first, or later allocations could
    reuse it unnoticed.
    """
    with contextlib.suppress(AttributeError, OSError):
        # glibc only.
        ctypes.CDLL(None).malloc_trim(0)
    with contextlib.suppress(OSError):
        # man 5 proc: "5" resets the peak resident set size.
        pathlib.Path("/proc/self/clear_refs").write_text("5")
