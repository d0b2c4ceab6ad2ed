"""Time spent in the parts of the training step."""
