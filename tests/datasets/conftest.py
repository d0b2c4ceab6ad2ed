"""Shared fixtures of the tests of data sets."""

import gzip

import pytest


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
