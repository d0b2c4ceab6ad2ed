"""SIGKILL at random moments, including during a checkpoint write."""

import random
import signal

import numpy as np
import pytest

from tests.helpers.processes import Process
from tools.endurance import kills, training

# Files are written the same way on every backend; what each backend restores is
# tested in `test_training_backup`.
pytestmark = [
    pytest.mark.one_backend,
    pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs SIGKILL"),
]


def start(*arguments):
    # Faster than a program: a server that has imported Keras forks it.
    return Process(training.train, *arguments)


def test_five_kills_do_not_change_the_result():
    """Two of them hit a write: a partial file is never taken for a backup."""
    seed = random.SystemRandom().randrange(1 << 32)
    print(f"seed: {seed}")  # shown if the test fails
    report = kills.kill_trainings(5, seed, start)
    assert kills.problems(report) == []
    assert (report["kills"], report["during_write"]) == (5, 2)
    assert report["trainings"] == 1 and report["resumed"] >= 4
    # Losses, weights, averages and the state of the optimizer.
    assert report["arrays"] > 80


@pytest.mark.parametrize("name", ["losses", "weights", "more"])
def test_a_difference_is_a_problem(tmp_path, name):
    calm = {"losses": np.zeros(3), "weights": np.ones(2)}
    found = calm | {name: np.full(3, 1e-7)}
    np.savez(tmp_path / "0.npz", **found)
    np.savez(tmp_path / "calm.npz", **calm)
    report = {"kills": 2, "during_write": 1, "arrays": 0, "different": []}
    kills._compare(tmp_path / "0.npz", tmp_path / "calm.npz", report)
    assert report["different"] == [f"0.npz: {name}"]
    assert name in kills.problems(report)[0]


def test_kills_that_hit_no_write_are_a_problem():
    report = {"kills": 4, "during_write": 1, "different": []}
    (problem,) = kills.problems(report)
    assert "1 of 4" in problem
