"""Cached results are recomputed when a variable changes."""

import gc
import weakref

import keras
import numpy as np
import pytest
from keras import ops

from keras_attn.backend import cached_until_update, programs_of
from tests.helpers.ops_cases import assert_close, normal, values

ON_JAX = keras.backend.backend() == "jax"


class Owner:
    """Dummy model."""


@pytest.fixture
def variables():
    return [keras.Variable(normal(2, 3, seed=seed)) for seed in (1, 2)]


def doubled(variables):
    return lambda: {"sum": 2.0 * variables[0] + variables[1], "none": ()}


@pytest.mark.parametrize("changed", [0, 1])
def test_assign_updates_result(variables, changed):
    owner = Owner()
    for _ in range(2):
        for _ in range(2):
            made = cached_until_update(
                doubled(variables), programs_of(owner, variables), "key"
            )
            first, second = map(values, variables)
            assert_close(values(made["sum"]), 2 * first + second)
            assert made["none"] == ()
        variables[changed].assign(normal(2, 3, seed=3))


@pytest.mark.skipif(not ON_JAX, reason="only JAX's arrays are immutable")
def test_result_is_cached_while_variables_are_unchanged(variables):
    owner, other = Owner(), Owner()

    def made(owner, key):
        return cached_until_update(
            doubled(variables), programs_of(owner, variables), key
        )

    first = made(owner, "key")["sum"]
    assert made(owner, "key")["sum"] is first
    assert made(owner, "other key")["sum"] is not first
    assert made(other, "key")["sum"] is not first
    variables[0].assign(np.zeros((2, 3)))
    assert made(owner, "key")["sum"] is not first


def test_references_neither_old_values_nor_owner(variables):
    owner = Owner()
    if ON_JAX:
        before = weakref.ref(variables[0].value)
    reference = weakref.ref(owner)
    cached_until_update(
        doubled(variables), programs_of(owner, variables), "key"
    )
    variables[0].assign(np.ones((2, 3)))
    gc.collect()
    if ON_JAX:
        assert before() is None
    del owner
    gc.collect()
    assert reference() is None


def test_changed_variable_list_updates_result(variables):
    owner = Owner()
    for count in (2, 1, 2):
        some = variables[:count]
        made = cached_until_update(
            summed(some), programs_of(owner, some), "key"
        )
        assert_close(values(made), sum(values(v).sum() for v in some), 1e-5)


def summed(variables):
    return lambda: sum(ops.sum(variable) for variable in variables)
