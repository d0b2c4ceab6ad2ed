"""Looks at the built site in headless Chromium.

`python -m tools.site` is the command; it says what it can do.
"""
