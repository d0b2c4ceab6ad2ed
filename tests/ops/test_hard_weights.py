"""Hard attention weights against PyTorch and SciPy."""

import keras
import numpy as np
import pytest
import scipy.stats
from keras import ops

from keras_attn.ops.hard_weights import (
    gumbel_noise,
    log_probability,
    one_hot_of_largest,
    straight_through,
)
from keras_attn.ops.score_softmax import hidden
from tests.helpers.gradients import gradient
from tests.helpers.ops_cases import assert_close, normal, values
from tests.helpers.weight_gradients import weighted_sum

torch = pytest.importorskip("torch")

pytestmark = pytest.mark.every_backend

SCORES = normal(2, 3, 4, seed=1)
UPSTREAM = normal(2, 3, 4, seed=2)


@pytest.mark.parametrize("temperature", [0.5, 1.0, 3.0])
def test_straight_through_matches_pytorch(temperature):
    torch.manual_seed(0)
    noise = -torch.empty(SCORES.shape).exponential_().log()
    scores = torch.tensor(SCORES, requires_grad=True)
    torch.manual_seed(0)
    expected = torch.nn.functional.gumbel_softmax(
        scores, temperature, hard=True
    )
    (expected * torch.tensor(UPSTREAM)).sum().backward()

    def weights_of(scores):
        drawn = ops.convert_to_tensor(noise.numpy())
        return straight_through(scores, None, drawn, temperature)

    weights = values(weights_of(ops.convert_to_tensor(SCORES)))
    assert set(weights.ravel().tolist()) == {0.0, 1.0}
    assert_close(weights, expected.detach().numpy())
    (at_scores,) = gradient(
        lambda scores: weighted_sum(weights_of(scores), UPSTREAM), SCORES
    )
    assert_close(at_scores, scores.grad.numpy())


def test_straight_through_never_chooses_masked_keys():
    mask = np.array([True, False, True, False])
    noise = np.zeros_like(SCORES)
    noise[..., 1] = 50

    def weights_of(scores):
        drawn = ops.convert_to_tensor(noise)
        return straight_through(scores, mask, drawn, 1e-6)

    weights = values(weights_of(ops.convert_to_tensor(SCORES)))
    chosen = np.where(mask, SCORES, -np.inf).argmax(-1)
    np.testing.assert_array_equal(weights, np.eye(4)[chosen])
    (at_scores,) = gradient(
        lambda scores: weighted_sum(weights_of(scores), UPSTREAM), SCORES
    )
    assert (at_scores[..., ~mask] == 0).all()


def test_noise_is_gumbel_distributed():
    seed = keras.random.SeedGenerator(3)
    noise = values(gumbel_noise((4000,), seed))
    assert np.isfinite(noise).all()
    assert scipy.stats.kstest(noise, scipy.stats.gumbel_r.cdf).pvalue > 1e-3
    assert (values(gumbel_noise((4000,), seed)) != noise).any()
    again = values(gumbel_noise((4000,), keras.random.SeedGenerator(3)))
    np.testing.assert_array_equal(again, noise)


def test_ties_are_broken_by_lower_index():
    scores = ops.convert_to_tensor([[1.0, 2.0, 2.0], [0.0, 0.0, 0.0]])
    expected = [[0, 1, 0], [1, 0, 0]]
    np.testing.assert_array_equal(values(one_hot_of_largest(scores)), expected)


def test_log_probability():
    mask = np.array([True, True, True, False])
    scores = hidden(ops.convert_to_tensor(SCORES), mask)
    chosen = np.eye(4, dtype="float32")[[[0, 1, 2], [2, 1, 0]]]
    actual = values(log_probability(scores, ops.convert_to_tensor(chosen)))
    powers = np.exp(SCORES) * mask
    probability = (powers * chosen).sum(-1) / powers.sum(-1)
    assert_close(actual, np.log(probability))
