"""Trainings that several files of tests share."""

import pytest

from tests.helpers.programs import run


@pytest.fixture(scope="session")
def train_once(tmp_path_factory):
    """Returns a function that trains, once for each program and its options.

    With `--quick`. It returns the folder, and what the program printed.
    """
    done = {}

    def train(name, *options):
        if (name, options) not in done:
            out = tmp_path_factory.mktemp(name)
            printed = run(name, "train", "--quick", *options, "--out", out)
            done[name, options] = out, printed
        return done[name, options]

    return train
