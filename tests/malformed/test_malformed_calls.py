"""Thousands of malformed calls of the public API raise clear errors."""

import contextlib
import fnmatch
import inspect

import pytest

from tests.helpers.public_api import parameters, public_objects
from tests.malformed import outcomes
from tests.malformed.known import KNOWN, MOST_KNOWN
from tests.malformed.registry import REGISTRY, calls_of, cases_of

LEAST_CALLS = 15_000
BAD = ("silent", "hang", "memory")
# Arguments of Keras's base classes, and of `call` methods.
OF_KERAS = {"dtype", "name", "training"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("malformed")


@pytest.fixture(autouse=True, scope="module")
def limits(folder):
    # Some values are valid relative paths, which calls may write to.
    with outcomes.memory_limit(), contextlib.chdir(folder):
        yield


def known(name):
    """Patterns of obscure calls that match the name of a call."""
    return [one for one in KNOWN if fnmatch.fnmatchcase(name, one)]


def described(case, outcome):
    return f"{outcome.kind}: {case.name} -> {outcome.message}"


def test_every_public_name_has_calls_or_a_reason():
    assert REGISTRY.keys() == public_objects().keys()
    for name, calls in REGISTRY.items():
        assert callable(calls) or len(calls) > 10, name


@pytest.mark.parametrize("name", REGISTRY)
def test_every_argument_is_replaced(name, folder):
    value = public_objects()[name]
    calls = calls_of(name, folder)
    replaced = {argument for call in calls for argument in call.arguments}
    # Layers check the arguments of their calls themselves.
    missing = parameters(value) - replaced - OF_KERAS
    if not calls or (inspect.isclass(value) and issubclass(value, tuple)):
        return
    assert not missing


def test_there_are_enough_calls_and_few_of_them_are_obscure(folder):
    names = [case.name for name in REGISTRY for case in cases_of(name, folder)]
    assert len(names) == len(set(names))
    assert len(names) >= LEAST_CALLS
    matched = sum(bool(known(name)) for name in names)
    assert matched < MOST_KNOWN * len(names)


@pytest.mark.parametrize("name", REGISTRY)
def test_valid_calls_are_accepted(name, folder):
    for call in calls_of(name, folder):
        if call.valid:
            call()


@pytest.mark.parametrize("name", REGISTRY)
def test_malformed_calls_raise_clear_errors(name, folder):
    unexpected, unused = [], set()
    for case in cases_of(name, folder):
        outcome = outcomes.run(case)
        patterns = known(case.name)
        if outcome.kind == "obscure" and patterns:
            continue
        if outcome.kind in (*BAD, "obscure"):
            unexpected.append(described(case, outcome))
        elif patterns:
            unused.add(f"clear now, but known as obscure: {case.name}")
    assert not unexpected, "\n" + "\n".join(unexpected)
    # Keep `KNOWN` as small as it can be.
    assert not unused, "\n" + "\n".join(sorted(unused))
