"""Attention alone: the op and the layer, forward and backward."""
