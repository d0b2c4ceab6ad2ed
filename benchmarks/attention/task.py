"""Arrays and masks of attention, and steps compiled per backend."""

import functools

import keras
import numpy as np

from benchmarks.attention import gpu_runner

WINDOW = 256


def heads(case, count=3):
    """Returns `count` float32 arrays (B, T, N, H)."""
    shape = case["rows"], case["length"], case["heads"], case["width"]
    if "dtype" in case:
        return _large(shape, count)
    rng = np.random.default_rng(0)
    return [rng.normal(size=shape).astype("float32") for _ in range(count)]


@functools.lru_cache(maxsize=1)
def _large(shape, count):
    """Draws large arrays, once for all cases of a process with this shape."""
    rng = np.random.default_rng(0)
    return [rng.standard_normal(shape, "float32") for _ in range(count)]


def tokens_there(case):
    """Returns a token mask, bool (B, T); the last row is half padding."""
    rows, length = case["rows"], case["length"]
    lengths = length - np.arange(rows) * length // (2 * rows)
    lengths[-1] = length // 2
    return np.arange(length) < lengths[:, None]


def dense_mask(case):
    """Returns the mask of a peer: bool, broadcastable, or None."""
    length = np.arange(case["length"])
    if case["mask"] == "window":
        near = np.abs(length[:, None] - length) < WINDOW
        return (near & (length[:, None] >= length))[None, None]
    if case["mask"] == "padded":
        return tokens_there(case)[:, None, None]
    return None


def flops(case):
    """Counts the floating-point operations of attention without projections.

    A causal mask has half of the pairs, a window a band, padding the pairs with
    unmasked keys. Backward costs 2.5 times forward, because the weights are
    recomputed.
    """
    length = case["length"]
    pairs = length * length
    if case["mask"] == "causal":
        pairs //= 2
    elif case["mask"] == "window":
        pairs = length * min(WINDOW, length)
    elif case["mask"] == "padded":
        pairs = length * tokens_there(case).sum() / case["rows"]
    total = 4 * case["rows"] * case["heads"] * case["width"] * pairs
    return int(total * (3.5 if case["backward"] else 1))


def tokens(case):
    """Counts the queries of a step."""
    return case["rows"] * case["length"]


def runner(function, arrays, backward, dtype=None):
    """Returns a callable that runs steps of a function of tensors.

    Args:
        function: callable of one tensor per array, returns a float tensor.
        arrays: list of float32 arrays.
        backward: bool. Compute the gradient of the sum of the result too.
        dtype: str. If given, `gpu_runner` runs the steps in this dtype.

    Returns:
        Callable of a number of steps, which returns the last sum.
    """
    if dtype is not None:
        return gpu_runner.runner(function, arrays, backward, dtype)
    prepare = {"jax": _jax, "tensorflow": _tensorflow, "torch": _torch}
    tensors = [keras.ops.convert_to_tensor(array) for array in arrays]
    step = prepare[keras.backend.backend()](function, backward)

    def run(steps):
        for _ in range(steps):
            result = step(*tensors)
        return float(keras.ops.convert_to_numpy(result))

    return run


def _jax(function, backward):
    import jax

    def total(*tensors):
        return function(*tensors).sum()

    if not backward:
        return jax.jit(total)
    argnums = tuple(range(8))

    @jax.jit
    def step(*tensors):
        value, grads = jax.value_and_grad(total, argnums[: len(tensors)])(
            *tensors
        )
        return value + sum(grad.sum() for grad in grads)

    return step


def _tensorflow(function, backward):
    import tensorflow as tf

    @tf.function(autograph=False)
    def step(*tensors):
        with tf.GradientTape() as tape:
            tape.watch(tensors)
            value = tf.reduce_sum(function(*tensors))
        if not backward:
            return value
        grads = tape.gradient(value, tensors)
        return value + tf.add_n([tf.reduce_sum(grad) for grad in grads])

    return step


def _torch(function, backward):
    import torch

    def step(*tensors):
        if not backward:
            with torch.no_grad():
                return function(*tensors).sum()
        tensors = [tensor.detach().requires_grad_() for tensor in tensors]
        value = function(*tensors).sum()
        grads = torch.autograd.grad(value, tensors)
        return (value + sum(grad.sum() for grad in grads)).detach()

    return step
