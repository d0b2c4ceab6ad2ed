"""The packing benchmark: equal pairs and losses, lengths as in the notes."""

import numpy as np
import pytest

from benchmarks.packing import ours, plan, task

CASE = plan.QUICK_CASES[0]


def test_contestants_have_equal_untrained_losses():
    losses = [ours.prepare(CASE, **one.options)(1) for one in plan.CONTESTANTS]
    assert len(losses) == 3
    np.testing.assert_allclose(losses, losses[0], rtol=1e-5)


@pytest.mark.one_backend
def test_contestants_read_all_tokens_and_little_padding_if_packed():
    for case in plan.CASES:
        reports = {
            one.options["batches"]: ours.dataset(case, **one.options).report
            for one in plan.CONTESTANTS
        }
        for report in reports.values():
            assert report.pairs == case["pairs"]
            assert report.target_tokens == task.tokens(case)
        padding = {name: r.padding_fraction for name, r in reports.items()}
        assert padding["packed"] < padding["buckets"] < padding["padded"]
        assert padding["packed"] < 0.2


@pytest.mark.one_backend
def test_lengths_match_the_notes():
    for case, median in zip(plan.CASES, (8, 12), strict=True):
        source, target = task.lengths({**case, "pairs": 4000})
        assert np.median(source) == median
        assert source.max() > 2 * median
        assert 0.1 < np.std(np.log(target / source)) < 0.25
