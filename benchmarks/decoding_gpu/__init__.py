"""Decoding of an encoder-decoder Transformer on a GPU."""
