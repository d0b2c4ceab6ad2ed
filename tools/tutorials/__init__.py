"""Turns the programs in `tutorials` into pages of the site.

`python -m tools.tutorials` is the command; it says what it can do.
"""
