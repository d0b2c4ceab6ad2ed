"""SIGKILL at random moments, including during a checkpoint write."""

import os
import pathlib
import random
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from tests.training import killable

PROGRAM = pathlib.Path(killable.__file__)
ROOT = PROGRAM.parents[2]
KILLS = 5

# Files are written the same way on every backend; what each backend restores is
# tested in `test_training_backup`.
pytestmark = [
    pytest.mark.one_backend,
    pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs SIGKILL"),
]


def start(folder, result):
    path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    return subprocess.Popen(
        [sys.executable, str(PROGRAM), str(folder), str(result)],
        env=os.environ | {"PYTHONPATH": path},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def wait_for_steps(process, count):
    """Reads the output until the process has taken `count` steps."""
    said = []
    for line in process.stdout:
        said.append(line)
        count -= line.startswith("step")
        if not count:
            break
    return said


def kill(process):
    process.send_signal(signal.SIGKILL)
    process.stdout.close()
    assert process.wait(60) == -signal.SIGKILL


def kill_while_it_writes(process, folder):
    """Kills it during a checkpoint write; returns whether that succeeded."""
    end = time.monotonic() + 60
    while not list(folder.glob(".partial-*")):
        assert process.poll() is None and time.monotonic() < end
        time.sleep(0.0005)
    kill(process)
    return bool(list(folder.glob(".partial-*")))


def test_five_kills_do_not_change_the_result(tmp_path):
    seed = random.SystemRandom().randrange(1 << 32)
    print(f"seed: {seed}")  # shown if the test fails
    draw = random.Random(seed)
    folder, result = tmp_path / "backup", tmp_path / "result.npz"
    killable.train(tmp_path / "calm", tmp_path / "calm.npz", 0, 0)

    during_write, starts = 0, []
    for number in range(KILLS):
        process = start(folder, result)
        if number % 2:
            wait_for_steps(process, 1)
            during_write += kill_while_it_writes(process, folder)
        else:
            # The first run must write a checkpoint, or there might be none.
            steps = draw.randint(1, 5) + (0 if number else 4)
            starts.append(wait_for_steps(process, steps))
            time.sleep(draw.uniform(0, 0.1))
            kill(process)
        assert not result.exists()
    # A partial file is never mistaken for a checkpoint.
    assert during_write
    process = start(folder, result)
    said, _ = process.communicate(timeout=120)
    assert process.returncode == 0, said
    assert "TrainingBackup: resuming after" in said, said

    with np.load(result) as found, np.load(tmp_path / "calm.npz") as calm:
        assert set(found.files) == set(calm.files)
        for name in calm.files:
            np.testing.assert_array_equal(found[name], calm[name], err_msg=name)
        assert len(calm["losses"]) == killable.EPOCHS * killable.STEPS
