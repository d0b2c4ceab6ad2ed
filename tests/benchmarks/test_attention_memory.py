"""The sequences are long, and all layers are there."""

from benchmarks.attention_memory import plan


def test_every_layer_of_the_attention_table_takes_part():
    assert len(plan.CONTESTANTS) == 7
    for case in plan.CASES:
        assert case["length"] == 16384 and case["backward"]
