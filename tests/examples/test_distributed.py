"""Programs of `examples/distributed`: equal to one process, and resumable."""

import signal
import subprocess
import sys

import keras
import pytest

from tests.helpers import distributed
from tests.helpers.distributed import FOLDER, assert_equal

PROGRAMS = {
    "jax": "jax_processes",
    "tensorflow": "tensorflow_workers",
    "torch": "torch_ddp",
}
BACKEND = keras.backend.backend()
PROGRAM = PROGRAMS.get(BACKEND)
SGD = "--optimizer", "sgd"
# The training that the kills interrupt: on PyTorch by `fit`, elsewhere with a
# model that compiles fast.
OPTIONS = *SGD, *(("--fit", 1) if BACKEND == "torch" else ("--model", "gpt"))


def environments(count):
    return distributed.load(PROGRAM)["environments"](count)


def train(count, out, *options):
    """What some processes train."""
    processes = distributed.start(PROGRAM, environments(count), out, *options)
    return distributed.trained(distributed.wait(processes), out)


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    """What one process trains."""
    return train(1, tmp_path_factory.mktemp("alone"), *OPTIONS)


@pytest.mark.every_backend
def test_a_killed_process_and_resumption(alone, tmp_path):
    """Two processes; one is killed after a checkpoint, and both restart."""
    start = (PROGRAM, environments(2), tmp_path, *OPTIONS)
    first, second = distributed.start(*start)
    second.wait_until(lambda: list(tmp_path.glob("backup/after-*")))
    assert second.stop(signal.SIGKILL)[0] == -signal.SIGKILL
    # It does not wait forever, and the checkpoint is complete.
    assert first.wait()[0] != 0
    assert not (tmp_path / "model.keras").exists()
    start = (PROGRAM, environments(2), *start[2:])
    printed = distributed.wait(distributed.start(*start))
    assert "resuming after" in printed
    assert not list(tmp_path.glob("backup/after-*"))
    assert_equal(distributed.trained(printed, tmp_path), alone)


@pytest.mark.one_backend("tensorflow")
@pytest.mark.skipif(BACKEND != "tensorflow", reason="TensorFlow's strategies")
def test_fit_on_four_devices_trains_like_one_worker(tmp_path):
    """A Transformer: the test above trains a GPT with two workers."""
    expected = train(1, tmp_path / "worker", *SGD)
    start = ("tensorflow_mirrored", [{}], tmp_path, *SGD, "--devices", 4)
    printed = distributed.wait(distributed.start(*start))
    assert_equal(distributed.trained(printed, tmp_path), expected)


@pytest.mark.one_backend("torch")
@pytest.mark.skipif(BACKEND != "torch", reason="PyTorch's optimizer")
def test_a_divided_optimizer_state(tmp_path):
    """A loop with PyTorch's Adam, whose state two processes divide."""
    found, expected = (
        train(count, tmp_path / f"{count}", "--zero", 1) for count in (2, 1)
    )
    assert_equal(found, expected, weights=None)


@pytest.mark.one_backend("torch")
@pytest.mark.skipif(BACKEND != "torch", reason="PyTorch's loop")
def test_the_loop_trains_like_fit(alone, tmp_path):
    assert_equal(train(2, tmp_path, *SGD), alone)


@pytest.mark.every_backend
def test_different_settings_are_refused(tmp_path):
    processes = distributed.start(
        PROGRAM, environments(2), tmp_path, "--seed", [1, 2]
    )
    for process in processes:
        status, output = process.wait()
        assert status != 0
        assert "settings['seed'] must be equal in all processes" in output
        assert "Received: 1 in process 0, 2 in process 1" in output


@pytest.mark.every_backend
def test_a_missing_process_is_not_awaited_forever(tmp_path):
    start = (PROGRAM, environments(2)[:1], tmp_path, "--timeout", 2)
    (process,) = distributed.start(*start)
    assert process.wait()[0] != 0


@pytest.mark.one_backend
def test_if_a_process_fails_the_others_are_stopped(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(
        f"""
import os, sys, time
sys.path.insert(0, {str(FOLDER)!r})
import shared
if "RANK" not in os.environ:
    shared.start_processes([{{"RANK": "0"}}, {{"RANK": "1"}}])
elif os.environ["RANK"] == "0":
    time.sleep(60)
else:
    sys.exit(3)
"""
    )
    done = subprocess.run(
        [sys.executable, program], capture_output=True, text=True, timeout=30
    )
    assert done.returncode == 1
    assert "the processes ended with status [-9, 3]" in done.stderr
