"""Decoding of a Llama-shaped model."""
