"""Cases of a test that need not run on every backend."""

import itertools

import pytest


def once(cases):
    """Marks cases that run with one backend.

    For further settings of what a test sees on every backend anyway, where the
    settings are read by Python alone: each would compile another program on
    JAX and TensorFlow.

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
    """Marks cases so that each runs with one backend, in turn.

    For programs that a user may run on any backend, and that run all of the
    library: each alone would take the minutes of a whole folder of tests. With
    one backend in `BACKENDS`, all of them run.

    Args:
        cases: iterable of values of one argument.

    Returns:
        List of `pytest.param`.
    """
    backends = itertools.cycle(["tensorflow", "jax", "torch"])
    return [
        pytest.param(case, marks=pytest.mark.one_backend(next(backends)))
        for case in cases
    ]
