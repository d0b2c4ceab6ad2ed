"""The training step of a small encoder-decoder Transformer."""
