"""`smoothed_nll` and its first and second derivatives."""

import keras
import numpy as np
import pytest

from keras_attn.backend import smoothed_nll
from tests.helpers.gradients import gradient

torch = pytest.importorskip("torch")

RNG = np.random.default_rng(0)
LOGITS = 3 * RNG.normal(size=(6, 9)).astype("float32")
LABELS = np.array([0, 8, 3, 5, 1, 2], "int32")
VISIBLE = np.array([True, True, False, True, True, False])
WEIGHTS = RNG.normal(size=6).astype("float32")
DIRECTION = RNG.normal(size=(6, 9)).astype("float32")


CLASS_WEIGHTS = RNG.uniform(0, 2, 9).astype("float32")


def by_torch(smoothing, weights, class_weights=None):
    """Returns losses, gradient and Hessian-vector product, by PyTorch."""
    z = torch.tensor(LOGITS, dtype=torch.float64, requires_grad=True)
    losses = torch.nn.functional.cross_entropy(
        z,
        torch.tensor(LABELS).long(),
        None if class_weights is None else torch.tensor(class_weights).double(),
        label_smoothing=smoothing,
        reduction="none",
    )
    losses = losses * torch.tensor(VISIBLE)
    total = torch.sum(losses * torch.tensor(weights))
    (slope,) = torch.autograd.grad(total, z, create_graph=True)
    (curved,) = torch.autograd.grad(
        torch.sum(slope * torch.tensor(DIRECTION)), z
    )
    return losses.detach().numpy(), slope.detach().numpy(), curved.numpy()


def losses(logits, smoothing, class_weights=None):
    if class_weights is not None:
        class_weights = keras.ops.convert_to_tensor(class_weights)
    return smoothed_nll(
        logits,
        keras.ops.convert_to_tensor(LABELS),
        keras.ops.convert_to_tensor(VISIBLE),
        smoothing,
        class_weights,
    )


def weighted(logits, smoothing, class_weights=None):
    return keras.ops.sum(
        losses(logits, smoothing, class_weights)
        * keras.ops.convert_to_tensor(WEIGHTS)
    )


@pytest.mark.parametrize("class_weights", [None, CLASS_WEIGHTS])
@pytest.mark.parametrize("smoothing", [0.0, 0.1, 0.7])
def test_value_and_gradient_match_torch(smoothing, class_weights):
    values, slope, _ = by_torch(smoothing, WEIGHTS, class_weights)
    found = losses(
        keras.ops.convert_to_tensor(LOGITS), smoothing, class_weights
    )
    np.testing.assert_allclose(
        keras.ops.convert_to_numpy(found), values, rtol=1e-5, atol=1e-7
    )
    (found,) = gradient(lambda z: weighted(z, smoothing, class_weights), LOGITS)
    np.testing.assert_allclose(found, slope, rtol=1e-5, atol=1e-6)
    assert np.all(found[~VISIBLE] == 0)


def slope_along(logits, smoothing, class_weights):
    """Returns the differentiable product of the gradient and a direction."""
    backend = keras.backend.backend()
    if backend == "jax":
        import jax

        slope = jax.grad(lambda z: weighted(z, smoothing, class_weights))(
            logits
        )
    elif backend == "torch":
        (slope,) = torch.autograd.grad(
            weighted(logits, smoothing, class_weights),
            logits,
            create_graph=True,
        )
    else:
        import tensorflow as tf

        with tf.GradientTape() as tape:
            tape.watch(logits)
            total = weighted(logits, smoothing, class_weights)
        slope = tape.gradient(total, logits)
    return keras.ops.sum(slope * keras.ops.convert_to_tensor(DIRECTION))


@pytest.mark.parametrize("class_weights", [None, CLASS_WEIGHTS])
def test_second_derivative_matches_torch(class_weights):
    _, _, curved = by_torch(0.1, WEIGHTS, class_weights)
    (found,) = gradient(lambda z: slope_along(z, 0.1, class_weights), LOGITS)
    np.testing.assert_allclose(found, curved, rtol=1e-4, atol=1e-6)


def test_retained_graph_gives_same_gradient():
    if keras.backend.backend() != "torch":
        pytest.skip("only PyTorch can retain a graph")
    logits = torch.tensor(LOGITS, requires_grad=True)
    total = weighted(logits, 0.1)
    first, second = (
        torch.autograd.grad(total, logits, retain_graph=True)[0]
        for _ in range(2)
    )
    assert torch.equal(first, second)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_half_precision_logits_are_computed_in_float32(dtype):
    half = keras.ops.cast(LOGITS, dtype)
    found = losses(half, 0.1)
    assert keras.backend.standardize_dtype(found.dtype) == "float32"
    exact = losses(keras.ops.cast(half, "float32"), 0.1)
    np.testing.assert_allclose(
        keras.ops.convert_to_numpy(found),
        keras.ops.convert_to_numpy(exact),
        rtol=1e-6,
    )
