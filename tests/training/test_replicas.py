"""Losses and metrics under `tf.distribute.MirroredStrategy`."""

import json
import os
import pathlib
import subprocess
import sys

import keras
import numpy as np
import pytest

from keras_attn import backend

PROGRAM = pathlib.Path(__file__).with_name("replicated.py")
ROOT = PROGRAM.parents[2]


@pytest.fixture(scope="module")
def results():
    """The results of the program, in one process."""
    pytest.importorskip("tensorflow")
    path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    ended = subprocess.run(
        [sys.executable, str(PROGRAM)],
        env=os.environ | {"PYTHONPATH": path, "KERAS_BACKEND": "tensorflow"},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert ended.returncode == 0, ended.stderr[-4000:]
    return json.loads(ended.stdout.splitlines()[-1])


@pytest.mark.one_backend("tensorflow")
@pytest.mark.parametrize(
    "case", ["mean", "sum", "mean_with_sample_weight", "model", "keras"]
)
def test_two_replicas_train_like_one_device(results, case):
    """The case "keras" compares two losses on two replicas."""
    expected, found = results[case]
    for name in ("history", "results"):
        assert found[name].keys() == expected[name].keys()
        assert "loss" in found[name] and "token_accuracy" in found[name]
        for key, value in expected[name].items():
            np.testing.assert_allclose(
                found[name][key], value, rtol=1e-5, err_msg=key
            )
    for a, b in zip(found["weights"], expected["weights"], strict=True):
        np.testing.assert_allclose(a, b, atol=2e-6)


def test_one_device_divides():
    total, count = map(keras.ops.convert_to_tensor, (6.0, 4.0))
    assert float(backend.divide_over_replicas(total, count)) == 1.5
    assert float(backend.divide_over_replicas(total)) == 6.0
    assert float(backend.divide_over_replicas(total, count * 0)) == 0.0
    assert not backend.is_replica_mean(total)
