"""The page shows the figures, and they are those of long sequences."""

from benchmarks.attention_memory import plan
from benchmarks.harness import race, report, table

DOCS = race.ROOT / "docs/benchmarks"


def test_every_layer_of_the_attention_table_takes_part():
    assert len(plan.CONTESTANTS) == 7
    for case in plan.CASES:
        assert case["length"] == 16384 and case["backward"]


def test_the_page_shows_what_was_measured():
    result = report.read(DOCS / "attention_memory.json")
    page = (DOCS / "attention_memory.md").read_text("utf-8")
    assert page == table.markdown(result)
    assert [one["case"] for one in result["results"]] == plan.CASES
    assert not result["quick"]
