"""The error of the tutorial builder that is shown without a traceback."""


class BuildError(Exception):
    """The page of a tutorial could not be built."""
