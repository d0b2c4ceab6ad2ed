"""What `ScoredAttention` asks how well a query fits a key."""
