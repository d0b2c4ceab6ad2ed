"""One product and three give the same."""

import pytest

from benchmarks.projections import plan, products


@pytest.mark.parametrize("case", plan.QUICK_CASES)
def test_both_ways_give_the_same_value_and_gradients(case):
    sums = [products.prepare(case, together)(1) for together in (True, False)]
    assert sums[0] == pytest.approx(sums[1], rel=1e-4)
    assert abs(sums[0]) > 1
