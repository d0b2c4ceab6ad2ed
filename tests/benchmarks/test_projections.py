"""One matrix product and three give the same results."""

import pytest

from benchmarks.projections import plan, products


@pytest.mark.parametrize("case", plan.QUICK_CASES)
def test_one_and_three_products_agree(case):
    sums = [products.prepare(case, together)(1) for together in (True, False)]
    assert sums[0] == pytest.approx(sums[1], rel=1e-4)
    assert abs(sums[0]) > 1
