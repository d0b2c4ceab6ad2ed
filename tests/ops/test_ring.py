"""Attention of sequences that are split over eight virtual devices."""

import pickle

import keras
import numpy as np
import pytest

from keras_attn.ops import attention_plan
from tests.helpers.processes import Process
from tests.ops import ring_runs

pytestmark = [
    pytest.mark.one_backend("jax"),
    pytest.mark.skipif(
        keras.backend.backend() != "jax", reason="only JAX shards tensors"
    ),
]


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    path = tmp_path_factory.mktemp("runs") / "found"
    status, printed = Process(ring_runs.write, path).wait()
    assert status == 0, printed
    return pickle.loads(path.read_bytes())


@pytest.mark.parametrize("name", ring_runs.NAMES)
def test_outputs_and_gradients_are_those_of_one_device(runs, name):
    (kernel, found), (alone, expected) = runs["values"][name]
    assert (kernel, alone) == ("ring", "plain")
    assert len(found) == (4 if name in ("padding", "window") else 5)
    for one, other in zip(found, expected, strict=True):
        assert np.abs(other).max() > 0.1
        np.testing.assert_allclose(one, other, atol=1e-5)


def test_losses_of_hidden_states_are_those_of_one_device(runs):
    found, expected = runs["losses"]
    assert len(found) == 5
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-5)


def test_memory_per_device_falls_linearly(runs):
    memory = {devices: found for devices, (found, _) in runs["memory"].items()}
    assert memory[8] <= 1.25 * memory[1] / 8


def test_keys_values_and_their_gradients_travel(runs):
    """Forward 2 T D numbers, backward 4 T D; and each time T positions."""
    tokens = ring_runs.ROWS * ring_runs.LENGTH
    numbers = tokens * (6 * ring_runs.WIDTH + 2)
    assert [sent for _, sent in runs["memory"].values()] == [0, 4 * numbers]


def test_devices_drop_different_weights(runs):
    """The output is the fraction of kept weights, of 32 per query."""
    kept = runs["dropped"]  # (B, T, N)
    assert 0.45 < kept.mean() < 0.55
    assert len({part.tobytes() for part in kept[:, ::16].reshape(-1, 4)}) == 4
    halves = kept.reshape(2, 2, 16, 2, 2).transpose(0, 1, 3, 2, 4)
    assert len({half.tobytes() for half in halves.reshape(8, -1)}) == 8


def test_lengths_that_the_devices_do_not_divide(runs):
    messages = runs["errors"]
    assert (
        "multiple of 8, the number of devices of the mesh axis 'context'"
        in (messages["length"])
    )
    assert "Received: 12 tokens" in messages["length"]
    assert "do not divide the lengths 12 and 12" in messages["forced"]


def test_what_a_ring_does_not_support(runs):
    messages = runs["errors"]
    assert messages["weights"] == (1, 1, 12, 12)
    assert messages["plan"].startswith("plain: ")
    assert (
        "not ring: the 8 devices that split sequences do not divide"
        in (messages["plan"])
    )


def test_without_a_distribution_there_is_no_ring():
    x = keras.ops.ones((1, 8, 1, 4))
    assert "ring" not in str(attention_plan(x, x))
    with pytest.raises(ValueError, match="no layout of the active distribut"):
        attention_plan(x, x, kernel="ring")
