"""The training step of an encoder-decoder Transformer on a GPU."""
