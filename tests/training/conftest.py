"""What the tests of training have in common."""

import os

import pytest


@pytest.fixture(scope="module", autouse=True)
def no_waiting_for_the_disk():
    """Leaves out fsync: hundreds of them take long where a disk is busy.

    tests/test_atomic_files.py sees that it is called, and when.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda descriptor: None)
        yield
