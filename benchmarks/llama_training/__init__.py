"""The training step of a Llama-shaped model."""
