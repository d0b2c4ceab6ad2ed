"""Cases of a test that need not run on every backend."""

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
