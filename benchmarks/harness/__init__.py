"""Runs contestants side by side and writes reports of the measurements."""
