"""What reading a text costs with a memory, and by windows."""
