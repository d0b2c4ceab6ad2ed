"""The benchmark of 8-bit caches, on a little text."""

import re

import pytest

from benchmarks import cache_quantization
from tools import character_gpt


@pytest.mark.one_backend("torch")
def test_it_prints_both_caches(capsys, monkeypatch):
    monkeypatch.setattr(character_gpt, "LENGTH", 8)
    given = {"epochs": 0, "rounds": 1, "tokens": 2, "characters": 9000}
    cache_quantization.main([f"--{k}={v}" for k, v in given.items()])
    printed = capsys.readouterr().out
    found = re.findall(r"(?m)^\| (\w+) \| (\S+) \| (\S+) \| \S+ \|$", printed)
    assert [row[0] for row in found] == ["float32", "int8"]
    (exact, exact_bytes), (rounded, rounded_bytes) = (
        (float(row[1]), int(row[2].replace(",", ""))) for row in found
    )
    assert exact == pytest.approx(rounded, rel=0.01)
    # 24 features per head: 28 bytes for 96.
    assert rounded_bytes * 96 == exact_bytes * 28
