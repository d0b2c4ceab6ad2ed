"""One product and three give the same, and the page shows the figures."""

import pytest

from benchmarks.harness import race, report, table
from benchmarks.projections import plan, products

DOCS = race.ROOT / "docs/benchmarks"


@pytest.mark.parametrize("case", plan.QUICK_CASES)
def test_both_ways_give_the_same_value_and_gradients(case):
    sums = [products.prepare(case, together)(1) for together in (True, False)]
    assert sums[0] == pytest.approx(sums[1], rel=1e-4)
    assert abs(sums[0]) > 1


def test_the_page_shows_what_was_measured():
    result = report.read(DOCS / "projections.json")
    page = (DOCS / "projections.md").read_text("utf-8")
    assert page == table.markdown(result)
    assert [one["case"] for one in result["results"]] == plan.CASES
    assert not result["quick"]
