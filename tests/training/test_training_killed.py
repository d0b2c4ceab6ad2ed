"""SIGKILL at random moments, including during a checkpoint write."""

import random
import signal
import time

import numpy as np
import pytest

from tests.helpers.processes import Process
from tests.training import killable

KILLS = 5
# Files are written the same way on every backend; what each backend restores is
# tested in `test_training_backup`.
pytestmark = [
    pytest.mark.one_backend,
    pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs SIGKILL"),
]


def wait_for_steps(training, count):
    """Waits until a training has taken `count` steps."""
    training.wait_until(lambda: training.output().count("step ") >= count)


def kill(training):
    status, _ = training.stop(signal.SIGKILL)
    assert status == -signal.SIGKILL


def kill_while_it_writes(training, folder):
    """Kills it during a checkpoint write; returns whether that succeeded."""
    training.wait_until(lambda: list(folder.glob(".partial-*")), 0.0005)
    kill(training)
    return bool(list(folder.glob(".partial-*")))


def test_five_kills_do_not_change_the_result(tmp_path):
    seed = random.SystemRandom().randrange(1 << 32)
    print(f"seed: {seed}")  # shown if the test fails
    draw = random.Random(seed)
    folder, result = tmp_path / "backup", tmp_path / "result.npz"
    killable.train(tmp_path / "calm", tmp_path / "calm.npz", 0, 0)

    during_write = 0
    for number in range(KILLS):
        training = Process(killable.train, folder, result)
        if number % 2:
            wait_for_steps(training, 1)
            during_write += kill_while_it_writes(training, folder)
        else:
            # The first run must write a checkpoint, or there might be none.
            steps = draw.randint(1, 5) + (0 if number else 4)
            wait_for_steps(training, steps)
            time.sleep(draw.uniform(0, 0.1))
            kill(training)
        assert not result.exists()
    # A partial file is never mistaken for a checkpoint.
    assert during_write
    status, said = Process(killable.train, folder, result).wait()
    assert status == 0, said
    assert "TrainingBackup: resuming after" in said, said

    with np.load(result) as found, np.load(tmp_path / "calm.npz") as calm:
        assert set(found.files) == set(calm.files)
        for name in calm.files:
            np.testing.assert_array_equal(found[name], calm[name], err_msg=name)
        assert len(calm["losses"]) == killable.EPOCHS * killable.STEPS
