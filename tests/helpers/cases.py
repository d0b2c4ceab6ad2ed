"""Test cases that need not run on every backend."""

import itertools

import pytest


def once(cases):
    """Marks cases that run on one backend only.

    For additional settings of code that the test already runs on every backend.
    On JAX and TensorFlow each setting would compile another program.

    Args:
        cases: iterable of values of one argument, or of tuples of several.

    Returns:
        List of `pytest.param`.
    """
    return [
        pytest.param(
            *(case if isinstance(case, tuple) else (case,)),
            marks=pytest.mark.one_backend,
        )
        for case in cases
    ]


def spread(cases):
    """Marks cases so that each runs on one backend, in rotation.

    For end-to-end programs, which take longer than unit tests, most of all
    where their operations are compiled: four of six run on PyTorch. If
    `BACKENDS` names a single backend, all of them run on it.

    Args:
        cases: iterable of values of one argument.

    Returns:
        List of `pytest.param`.
    """
    backends = itertools.cycle(
        ["tensorflow", "torch", "torch", "jax", "torch", "torch"]
    )
    return [
        pytest.param(case, marks=pytest.mark.one_backend(next(backends)))
        for case in cases
    ]
