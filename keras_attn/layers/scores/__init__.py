"""Score functions of `ScoredAttention`."""
