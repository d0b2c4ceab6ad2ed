"""The benchmark of speculative decoding, at a tiny size."""

import pytest

from benchmarks import speculative_decoding

pytestmark = pytest.mark.one_backend("torch")


def test_a_table(capsys):
    given = {"layers": 1, "width": 8, "assistant-width": 4, "steps": 1}
    given |= {"assistant-steps": 1}
    given |= {"rows": "2", "drafts": 2, "tokens": 6, "rounds": 1}
    given |= {"characters": 9000}
    speculative_decoding.main([f"--{k}={v}" for k, v in given.items()])
    lines = capsys.readouterr().out.splitlines()
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in lines
        if line.startswith("| ")
    ][2:]
    assert [row[1:3] for row in rows] == [
        [strategy, draft]
        for strategy in ("greedy", "sampling")
        for draft in ("none", "assistant", "lookup")
    ]
    for _, _, draft, calls, accepted, cost, speedup in rows:
        assert 1 <= float(calls) <= 3
        assert (accepted == "") == (draft == "none")
        assert float(cost) > 0
        assert float(speedup) > 0
