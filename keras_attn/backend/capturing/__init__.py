"""Capturing a function of tensors as a graph, and running that (PyTorch)."""
