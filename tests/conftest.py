"""What every test has in common: a backend, a seed, a hypothesis profile."""

import gc
import importlib
import os

# Before the first import of a backend, which reads these only once. Memory is
# taken as needed, so that the backends can share one GPU; figures are drawn to
# files. What the caller has set stays.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
os.environ.setdefault("TF_FORCE_GPU_ALLOW_GROWTH", "true")
os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
os.environ.setdefault("MPLBACKEND", "agg")
# The matrices of tests are tiny; PyTorch's threads would wait for each other,
# ten times longer where another program has a core.
os.environ.setdefault("OMP_NUM_THREADS", "1")

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
    """Lets JAX find what an earlier process of these tests has compiled.

    Much of its time goes into programs of one operation, the same ones in every
    file. Each worker has a folder of its own, since two that write one program
    at once could read half of it; what can't be read is compiled anew.
    `pytest --cache-clear` forgets all of them.
    """
    worker = os.environ.get("PYTEST_XDIST_WORKER")
    cached = worker is not None and hasattr(config, "cache")
    if keras.backend.backend() != "jax" or not cached:
        return
    import jax

    folder = config.cache.mkdir(f"jax-{worker}")
    jax.config.update("jax_compilation_cache_dir", str(folder))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)


def pytest_report_header():
    """Names the backend that runs, and what it runs on."""
    device = "GPU" if gpu_seen() else "CPU"
    return f"backend: {keras.backend.backend()} on {device}"


def pytest_collection_finish():
    """Takes the modules of all backends out of the garbage collector's way."""
    gc.freeze()


def pytest_collection_modifyitems(items):
    """Skips the tests that need a GPU where the backend sees none."""
    if gpu_seen():
        return
    reason = f"{keras.backend.backend()} sees no GPU here"
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
