"""Parts of the step capture on PyTorch."""
