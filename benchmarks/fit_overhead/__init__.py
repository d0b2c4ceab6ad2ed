"""The overhead of `fit` with a small model."""
