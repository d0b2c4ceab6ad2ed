"""Shared fixtures of the tests of data sets."""

import gzip
import pathlib

import pytest


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Marks all tests of this folder: data sets do not involve a backend."""
    for item in items:
        if pathlib.Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.one_backend)


@pytest.fixture
def write(tmp_path):
    """Writes a file into a temporary folder and returns its path."""

    def write(name, content):
        content = content.encode() if isinstance(content, str) else content
        path = tmp_path / name
        zipped = name.endswith(".gz")
        path.write_bytes(gzip.compress(content) if zipped else content)
        return path

    return write
