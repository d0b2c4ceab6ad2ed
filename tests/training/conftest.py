"""Fixtures of the training tests."""

import os

import pytest


@pytest.fixture(scope="module", autouse=True)
def no_fsync():
    """Disables fsync: hundreds of calls are slow on a busy disk.

    tests/test_atomic_files.py checks when it is called.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda descriptor: None)
        yield
