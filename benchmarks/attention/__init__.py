"""The attention op and the attention layer, forward and backward."""
