"""Captures a function of tensors as a graph and runs the graph (PyTorch)."""
