"""Blocks so small that the short sequences of these tests have several."""

import pytest

import keras_attn.ops.blockwise


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    """Blocks of two queries and two keys: 5 tokens, three blocks."""
    monkeypatch.setattr(keras_attn.ops.blockwise, "BLOCK", 2)
