"""Checks the built site in headless Chromium: `python -m tools.site --help`."""
