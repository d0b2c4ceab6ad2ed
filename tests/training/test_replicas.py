"""Losses and metrics under `tf.distribute.MirroredStrategy`."""

import json

import keras
import numpy as np
import pytest

from keras_attn import backend
from tests.helpers.processes import Process


@pytest.fixture(scope="module")
def results():
    """The results of the program, in a process of its own."""
    pytest.importorskip("tensorflow")
    from tests.training import replicated

    status, output = Process(replicated.main).wait()
    assert status == 0, output[-4000:]
    return json.loads(output.splitlines()[-1])


@pytest.mark.one_backend("tensorflow")
@pytest.mark.parametrize("case", ["losses", "model", "keras"])
def test_two_replicas_train_like_one_device(results, case):
    """The case "keras" compares two losses on two replicas."""
    expected, found = results[case]
    for name in ("history", "results"):
        assert found[name].keys() == expected[name].keys()
        assert "loss" in found[name]
        assert any("token_accuracy" in key for key in found[name])
        for key, value in expected[name].items():
            np.testing.assert_allclose(
                found[name][key], value, rtol=1e-5, err_msg=key
            )
    if case == "losses":
        assert {"sum_loss", "mean_perplexity"} <= found["history"].keys()
    if case == "model":
        # Adam amplifies rounding errors of weights without a true gradient.
        return
    for a, b in zip(found["weights"], expected["weights"], strict=True):
        np.testing.assert_allclose(a, b, atol=2e-6)


def test_one_device_divides():
    total, count = map(keras.ops.convert_to_tensor, (6.0, 4.0))
    assert float(backend.divide_over_replicas(total, count)) == 1.5
    assert float(backend.divide_over_replicas(total)) == 6.0
    assert float(backend.divide_over_replicas(total, count * 0)) == 0.0
    assert not backend.is_replica_mean(total)
