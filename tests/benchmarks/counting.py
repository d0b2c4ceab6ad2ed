"""A contestant that imports no backend, so that it starts at once."""


def prepare(case, size):
    """Returns a function that adds numbers up `steps` times."""

    def run(steps):
        return float(sum(sum(range(size)) for _ in range(steps)))

    return run
