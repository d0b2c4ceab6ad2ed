"""The attention memory benchmark covers both layers on long sequences."""

from benchmarks.attention_memory import plan


def test_both_layers_run_on_each_backend():
    backends = [one.backend for one in plan.CONTESTANTS]
    assert sorted(backends) == sorted(["torch", "jax", "tensorflow"] * 2)
    for case in plan.CASES:
        assert case["length"] == 16384 and case["backward"]
