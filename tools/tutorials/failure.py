"""The one error that the tutorial builder explains in one sentence."""


class BuildError(Exception):
    """Says why a tutorial did not become a page."""
