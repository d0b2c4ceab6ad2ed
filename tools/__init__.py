"""Small programs for those who work on the library; none is installed."""
