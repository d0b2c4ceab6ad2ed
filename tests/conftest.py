"""What every test has in common: a backend, a seed, a hypothesis profile."""

import gc
import importlib
import os

from tools.forked_pytest import prepare

# Before the first import of a backend.
prepare()

import hypothesis
import keras
import pytest

from tools.gpu import gpu_seen
from tools.site.browser import Browser, find_browser

# A first example may compile, so no example has a deadline.
hypothesis.settings.register_profile("local", deadline=None, max_examples=25)
hypothesis.settings.register_profile(
    "ci", hypothesis.settings.get_profile("local"), derandomize=True
)
hypothesis.settings.load_profile("ci" if os.environ.get("CI") else "local")


def pytest_configure(config):
    """Lets JAX find what other processes of these tests have compiled.

    Much of its time goes into programs of one operation, the same ones in every
    file. `pytest --cache-clear` forgets all of them.
    """
    if keras.backend.backend() != "jax" or not hasattr(config, "cache"):
        return
    import jax
    from jax._src.interpreters import mlir
    from jax._src.lru_cache import LRUCache

    folder = config.cache.mkdir("jax")
    jax.config.update("jax_compilation_cache_dir", str(folder))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
    # JAX 0.10.2 writes into the file that others may be reading, unless its
    # size is limited, and then it lists the whole folder for each program.
    LRUCache.put = _put_whole
    # JAX 0.10.2 loads all dialects of MLIR again for each program, a quarter of
    # the time that a program of one operation takes. A context can be shared.
    context = mlir.make_ir_context()
    mlir.make_ir_context = lambda: context


def _put_whole(cache, key, value):
    path = cache.path / f"{key}-cache"
    partial = cache.path / f"{key}-{os.getpid()}"
    partial.write_bytes(value)
    partial.replace(path)


def pytest_report_header():
    """Names the backend that runs, and what it runs on."""
    device = "GPU" if gpu_seen() else "CPU"
    return f"backend: {keras.backend.backend()} on {device}"


def pytest_collection_finish():
    """Takes the modules of all backends out of the garbage collector's way."""
    gc.freeze()


def pytest_collection_modifyitems(config, items):
    """Takes out what another backend runs, and skips what needs a GPU.

    `make test` names all of its backends in TEST_BACKENDS. A test marked
    `one_backend` runs with the last of them, or with the one that the mark
    names if that is among them.
    """
    here = keras.backend.backend()
    backends = os.environ.get("TEST_BACKENDS", here).split()
    elsewhere = []
    for item in items:
        mark = item.get_closest_marker("one_backend")
        named = [name for name in mark.args if name in backends] if mark else []
        if mark and here != (named or backends)[-1]:
            elsewhere.append(item)
    if elsewhere:
        config.hook.pytest_deselected(items=elsewhere)
        items[:] = [item for item in items if item not in set(elsewhere)]
    if gpu_seen():
        return
    reason = f"{here} sees no GPU here"
    for item in items:
        if "gpu" in item.keywords:
            item.add_marker(pytest.mark.skip(reason=reason))


@pytest.fixture(autouse=True)
def seed():
    """Starts every test from the same random state."""
    keras.utils.set_random_seed(0)


@pytest.fixture(autouse=True, scope="module")
def forget_what_stays():
    """Takes what a file leaves behind out of the garbage collector's way.

    Compiled programs stay for good, in gigabytes; and Keras lets the collector
    look through everything each time that a layer loses a weight, as all do in
    `quantize`.
    """
    yield
    gc.collect()
    gc.freeze()


@pytest.fixture
def captures(monkeypatch):
    """Counts the captures of a test, by the function that was captured."""
    names = []
    module = importlib.import_module("keras_attn.backend.captured_step")
    trace = module.trace

    def counted(function, variables, arguments, name):
        names.append(name)
        return trace(function, variables, arguments, name)

    monkeypatch.setattr(module, "trace", counted)
    return names


@pytest.fixture(scope="session")
def browser():
    """A running Chromium. Where none is installed, the test is skipped.

    With NEED_CHROMIUM set, as it is where `.ci/run` installs one, a missing
    Chromium is a failure.
    """
    program = find_browser()
    if program is None:
        missing = "no Chromium is installed (Debian: apt-get install chromium)"
        if os.environ.get("NEED_CHROMIUM"):
            pytest.fail(missing)
        pytest.skip(missing)
    with Browser(program) as running:
        yield running
