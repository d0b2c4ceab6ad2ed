"""How fast a trained encoder-decoder Transformer generates tokens."""
