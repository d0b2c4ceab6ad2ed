"""Shared configuration of the tests: backend, seed, hypothesis profile."""

import collections
import gc
import importlib
import os
import pathlib
import zlib

from tools.forked_pytest import prepare

# Before the first import of a backend.
prepare()

import hypothesis
import keras
import pytest

from keras_attn.decoding import loop
from tests.helpers import jax_cache
from tools.gpu import gpu_seen
from tools.site.browser import Browser, find_browser

ROOT = pathlib.Path(__file__).parents[1]
# All of these tests run on every backend: the folder is about what differs.
EVERYWHERE = "tests/backend"
# One of so many further cases of a test runs on a second backend,
THINNED = 6
# and one of so many other tests.
SAMPLED = 32

# No deadline, because the first example may compile.
hypothesis.settings.register_profile("local", deadline=None, max_examples=25)
hypothesis.settings.register_profile(
    "ci", hypothesis.settings.get_profile("local"), derandomize=True
)
hypothesis.settings.load_profile("ci" if os.environ.get("CI") else "local")


def pytest_configure(config):
    """Sets up the cache of JAX, which `pytest --cache-clear` empties."""
    if keras.backend.backend() != "jax" or not hasattr(config, "cache"):
        return
    jax_cache.share(config.cache.mkdir("jax"))


def pytest_report_header():
    """Returns the backend and the device."""
    device = "GPU" if gpu_seen() else "CPU"
    return f"backend: {keras.backend.backend()} on {device}"


def pytest_collection_finish():
    """Exempts the imported modules from garbage collection.

    The rest is collected less often than by default, which takes up to a fifth
    of the time of tests.
    """
    gc.freeze()
    gc.set_threshold(20_000, 20, 100)


def pytest_collection_modifyitems(config, items):
    """Deselects tests that run on another backend, and skips GPU tests.

    `make test` lists its backends in TEST_BACKENDS, and in ALONE_SHARE the
    share of the tests that a backend runs alone.
    """
    here = keras.backend.backend()
    backends = os.environ.get("TEST_BACKENDS", here).split()
    share = os.environ.get("ALONE_SHARE", "1/1")
    cases = collections.Counter()
    elsewhere = []
    for item in items:
        test = item.nodeid.partition("[")[0]
        if here not in chosen(item, backends, cases[test]) or not shared(
            item, share, cases[test]
        ):
            elsewhere.append(item)
        cases[test] += 1
    if elsewhere:
        config.hook.pytest_deselected(items=elsewhere)
        items[:] = [item for item in items if item not in set(elsewhere)]
    if gpu_seen():
        return
    reason = f"{here} sees no GPU here"
    for item in items:
        if "gpu" in item.keywords:
            item.add_marker(pytest.mark.skip(reason=reason))


def chosen(item, backends, case=0):
    """Returns the backends that a test runs on.

    A test marked `one_backend` runs on the last one, or on the one that the
    mark names if that is among them. Those of the folder `EVERYWHERE`, and
    those that skip themselves on some backend, run on every backend; of a test
    marked `every_backend`, the first case. Its other cases run on the last
    backend, and one of `THINNED` also on one of the others.
    Of all other tests, which run on the last one, one in `SAMPLED` runs on
    another, which a hash of its name chooses.

    Args:
        item: the collected test.
        backends: list of str.
        case: int. Which of the cases of the test it is.
    """
    mark = item.get_closest_marker("one_backend")
    if mark:
        named = [name for name in mark.args if name in backends]
        return (named or backends)[-1:]
    marked = item.get_closest_marker("every_backend")
    if (
        len(backends) < 3
        or _folder(item) == EVERYWHERE
        or item.get_closest_marker("skipif")
        or (marked and not case)
    ):
        return backends
    *others, last = backends
    if marked:
        turn, rest = divmod(case, THINNED)
        if rest != THINNED // 2:
            return [last]
        return [others[turn % len(others)], last]
    # Not `hash`, which differs between processes.
    number = zlib.crc32(item.nodeid.encode()) % (SAMPLED * len(others))
    return [last, *others[number : number + 1]]


def shared(item, share, case=0):
    """Returns whether a backend that is alone runs a test.

    Each backend alone runs the first case of a test marked `every_backend`.
    The other tests are divided among them by a hash of their names: two thirds
    run on the last one, which compiles least, if there are three.

    Args:
        item: the collected test.
        share: str, such as "2/3": the second of three backends.
        case: int. Which of the cases of the test it is.
    """
    number, count = map(int, share.split("/"))
    if item.get_closest_marker("every_backend") and not case:
        return True
    # Not `hash`, which differs between processes.
    part = zlib.crc32(item.nodeid.encode()) % (2 * count)
    return min(part, count - 1) == number - 1


def _folder(item):
    return item.path.parent.relative_to(ROOT).as_posix()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item):
    """Decodes with plain steps on PyTorch, in fixtures too.

    Capturing the steps of a model takes much longer than running them. The
    results are the same: tests marked `captured_steps` check it for each model
    and strategy.
    """
    captured = "captured_steps" in item.keywords
    loop.TORCH_STEPS = "captured" if captured else "plain"


@pytest.fixture(autouse=True)
def seed():
    """Starts every test from the same random state."""
    keras.utils.set_random_seed(0)


@pytest.fixture(autouse=True, scope="module")
def forget_what_stays():
    """Exempts the objects that a file leaves from garbage collection.

    Compiled programs are never freed and take gigabytes; and Keras runs a full
    collection each time a layer removes a weight, as all layers do in
    `quantize`.
    """
    yield
    gc.collect()
    gc.freeze()


@pytest.fixture
def captures(monkeypatch):
    """Lists the names of the functions that a test captures."""
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
    """A running Chromium. If none is installed, the test is skipped.

    With NEED_CHROMIUM set, as by `.ci/run`, a missing Chromium is a failure.
    """
    program = find_browser()
    if program is None:
        missing = "no Chromium is installed (Debian: apt-get install chromium)"
        if os.environ.get("NEED_CHROMIUM"):
            pytest.fail(missing)
        pytest.skip(missing)
    # axe takes long on large pages of the reference if the machine is busy.
    with Browser(program, seconds=180.0) as running:
        yield running
