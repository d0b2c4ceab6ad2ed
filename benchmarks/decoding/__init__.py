"""Generation speed of an encoder-decoder Transformer."""
