"""Small blocks, so that short test sequences span several."""

import pytest

import keras_attn.ops.blockwise


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    """Sets blocks of two queries and two keys: 5 tokens are three blocks."""
    monkeypatch.setattr(keras_attn.ops.blockwise, "BLOCK", 2)
