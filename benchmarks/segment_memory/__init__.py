"""Cost of reading a text with segment memory and with windows."""
