"""Memory of the attention layer on a long sequence."""
