"""Builds the tutorial pages of the site: `python -m tools.tutorials --help`."""
