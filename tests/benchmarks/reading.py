"""A contestant whose steps read tensors on the host."""

from keras import ops


def prepare(case):
    """Returns a function that reads `case["reads"]` numbers per step."""

    def run(steps):
        # Once per call, not per step.
        number = float(ops.ones(()))
        for _ in range(steps * case["reads"]):
            float(ops.ones(()))
        return number

    return run
