"""The products timed alone are those of the training step."""

import pytest

from benchmarks.training_parts import plan, products
from benchmarks.training_step import task


@pytest.mark.parametrize("case", [*plan.CASES, *plan.QUICK_CASES])
def test_products_match_the_counted_flops(case):
    forward = sum(
        times * batch * 2 * n * k * m
        for times, batch, n, k, m in products.shapes(case)
    )
    assert 3 * forward == task.flops(case)


def test_products_run():
    case = plan.QUICK_CASES[0]
    assert products.prepare(case)(2) == 0.0
