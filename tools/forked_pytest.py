"""Runs pytest in forks of a process that has imported the backend already.

Importing a backend, PyTorch and transformers takes about ten seconds, longer
than most test files. When a fork ends, the memory of its compiled programs is
freed.
"""

import contextlib
import gc
import importlib
import os
import shutil
import signal
import socket
import sys
import traceback
from multiprocessing import connection, forkserver

from tools.hidden_packages import hide_other_backends

# Packages that many tests import. transformers loads its models lazily, so one
# of them is imported by name. Keras 3.15 imports TensorFlow on any backend to
# set a random seed.
WARM = (
    "hypothesis",
    "keras",
    "numpy",
    "pytest",
    "scipy.stats",
    "tensorflow",
    "torch",
    "transformers.models.gpt2.modeling_gpt2",
)
# pytest cannot rewrite the assertions of plugins that are imported already.
_OPTIONS = ("-W", "ignore:Module already imported so cannot be rewritten")
# Packages that a fork imports from its own tree.
OURS = ("benchmarks", "keras_attn", "tests", "tutorials")


# Backends read these once, when they are imported. Memory is taken as needed,
# so that they can share one GPU; figures are drawn to files. The matrices of
# tests are tiny: PyTorch's threads would wait for each other, ten times longer
# where another program has a core.
ENVIRONMENT = {
    "TF_CPP_MIN_LOG_LEVEL": "2",
    "TF_FORCE_GPU_ALLOW_GROWTH": "true",
    "XLA_PYTHON_CLIENT_PREALLOCATE": "false",
    "MPLBACKEND": "agg",
    "OMP_NUM_THREADS": "1",
}


def prepare():
    """Prepares this process for tests, before it imports a backend."""
    # What the caller has set stays.
    os.environ.update({**ENVIRONMENT, **os.environ})
    hide_other_backends()


def warm_up():
    """Imports what many tests need, without computing anything.

    A process that has computed something on JAX or TensorFlow must not be
    forked: the threads of their runtimes would be missing in the fork.
    """
    prepare()
    for name in WARM:
        try:
            importlib.import_module(name)
        except ImportError:
            # Not installed: the tests that need it are skipped.
            continue
    # Collections in the forks would copy the pages of all these objects.
    gc.freeze()


def fork_pytest(arguments, log, tree=None, plugins=(), environment=None):
    """Starts pytest in a fork of this process.

    Args:
        arguments: list of str. Command line of pytest.
        log: `pathlib.Path`. Everything that pytest and its tests print.
        tree: `pathlib.Path` of the checkout; default: the current folder.
        plugins: objects that pytest registers as plugins.
        environment: dict of variables to set.

    Returns:
        int. The id of the process. It leads its own process group and exits
        with the status of pytest.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    process = os.fork()
    if process:
        return process
    status = 3  # pytest's own for an internal error
    try:
        os.setsid()
        # Not the handlers of the parent, which stop its own processes.
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        os.environ.update(environment or {})
        _write_to(log)
        _work_in(tree or os.getcwd())
        with _fork_server():
            import pytest

            status = int(
                pytest.main([*_OPTIONS, *arguments], plugins=list(plugins))
            )
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        # Without the exit handlers of the parent.
        os._exit(status)


@contextlib.contextmanager
def _fork_server():
    """Starts the server that forks the processes of `multiprocessing`, now.

    Once a test has computed something, this process must not be forked, and a
    server that `multiprocessing` starts has to import the backend again.
    """
    # As `ForkServer.ensure_running` does, except that it spawns a program (as
    # of Python 3.13).
    server = forkserver._forkserver
    address = connection.arbitrary_address("AF_UNIX")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(address)
        listener.listen()
        # The server ends when this process closes the other end.
        ended, alive = os.pipe()
        process = os.fork()
        if not process:
            try:
                os.close(alive)
                forkserver.main(listener.fileno(), ended, [])
            finally:
                os._exit(0)
        os.close(ended)
    server._forkserver_address = address
    server._forkserver_alive_fd = alive
    server._forkserver_pid = process
    try:
        yield
    finally:
        # This process ends without the exit handlers that remove it.
        shutil.rmtree(os.path.dirname(address), ignore_errors=True)


def _write_to(log):
    file = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(file, 1)
    os.dup2(file, 2)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)


def _work_in(tree):
    here = os.getcwd()
    os.chdir(tree)
    others = [path for path in sys.path if path not in ("", here, str(tree))]
    sys.path[:] = [str(tree), *others]
    for name in [n for n in sys.modules if n.partition(".")[0] == "tools"]:
        del sys.modules[name]
    imported = {name.partition(".")[0] for name in sys.modules}
    early = imported.intersection(OURS)
    if early:
        raise RuntimeError(f"imported before the fork: {sorted(early)}")
