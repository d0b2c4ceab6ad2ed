"""SIGKILL at random moments, including during a checkpoint write."""

import multiprocessing
import os
import random
import signal
import time

import numpy as np
import pytest

from tests.training import killable

KILLS = 5
# Forks each training from a process that has imported Keras, which takes ten
# seconds.
_PROCESSES = multiprocessing.get_context("forkserver")
_PROCESSES.set_forkserver_preload(["keras", "tests.training.killable"])

# Files are written the same way on every backend; what each backend restores is
# tested in `test_training_backup`.
pytestmark = [
    pytest.mark.one_backend,
    pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs SIGKILL"),
]


class Training:
    """A training in a process of its own.

    Args:
        folder: path. Of its backup.
        result: path. The file that it writes at its end.
        log: path. The file with what it prints.
    """

    def __init__(self, folder, result, log):
        self.log = log
        log.touch()
        self.process = _PROCESSES.Process(
            target=_train, args=(folder, result, log)
        )
        self.process.start()

    def output(self):
        """Returns what it has printed."""
        return self.log.read_text("utf-8")

    def wait_for(self, holds):
        """Waits until a condition holds."""
        end = time.monotonic() + 120
        while not holds():
            assert self.process.is_alive(), self.output()
            assert time.monotonic() < end, self.output()
            time.sleep(0.0005)

    def wait_for_steps(self, count):
        """Waits until it has taken `count` steps."""
        self.wait_for(lambda: self.output().count("step ") >= count)

    def kill(self):
        """Kills it."""
        self.process.kill()
        self.process.join(60)
        assert self.process.exitcode == -signal.SIGKILL


def _train(folder, result, log):
    file = os.open(log, os.O_WRONLY | os.O_APPEND)
    os.dup2(file, 1)
    os.dup2(file, 2)
    killable.train(folder, result)


def kill_while_it_writes(training, folder):
    """Kills it during a checkpoint write; returns whether that succeeded."""
    training.wait_for(lambda: list(folder.glob(".partial-*")))
    training.kill()
    return bool(list(folder.glob(".partial-*")))


def test_five_kills_do_not_change_the_result(tmp_path):
    seed = random.SystemRandom().randrange(1 << 32)
    print(f"seed: {seed}")  # shown if the test fails
    draw = random.Random(seed)
    folder, result = tmp_path / "backup", tmp_path / "result.npz"
    killable.train(tmp_path / "calm", tmp_path / "calm.npz", 0, 0)

    during_write = 0
    for number in range(KILLS):
        training = Training(folder, result, tmp_path / f"{number}.log")
        if number % 2:
            training.wait_for_steps(1)
            during_write += kill_while_it_writes(training, folder)
        else:
            # The first run must write a checkpoint, or there might be none.
            training.wait_for_steps(draw.randint(1, 5) + (0 if number else 4))
            time.sleep(draw.uniform(0, 0.1))
            training.kill()
        assert not result.exists()
    # A partial file is never mistaken for a checkpoint.
    assert during_write
    training = Training(folder, result, tmp_path / "last.log")
    training.process.join(120)
    said = training.output()
    assert training.process.exitcode == 0, said
    assert "TrainingBackup: resuming after" in said, said

    with np.load(result) as found, np.load(tmp_path / "calm.npz") as calm:
        assert set(found.files) == set(calm.files)
        for name in calm.files:
            np.testing.assert_array_equal(found[name], calm[name], err_msg=name)
        assert len(calm["losses"]) == killable.EPOCHS * killable.STEPS
