"""The same step in plain JAX, to measure the overhead of Keras on JAX."""

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks.training_step import task


def prepare(case):
    """Returns a callable that runs training steps."""
    weights = _weights(case, np.random.default_rng(0))
    mean, square = (jax.tree.map(jnp.zeros_like, weights) for _ in range(2))
    state = (weights, mean, square, jnp.zeros((), "int32"))
    data = [
        tuple(map(jnp.asarray, batch))
        for batch in zip(*task.batches(case), strict=True)
    ]
    step = jax.jit(
        lambda state, batch: _step(state, batch, case), donate_argnums=0
    )

    def run(steps):
        nonlocal state
        for number in range(steps):
            state, loss = step(state, data[number % len(data)])
        return float(loss)

    return run


def _step(state, batch, case):
    weights, mean, square, count = state
    key = jax.random.fold_in(jax.random.key(0), count)
    loss, grads = jax.value_and_grad(_loss)(weights, batch, key, case)
    count = count + 1
    mean = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, mean, grads)
    square = jax.tree.map(lambda v, g: 0.999 * v + 0.001 * g * g, square, grads)
    rate = task.RATE * jnp.sqrt(1 - 0.999**count) / (1 - 0.9**count)
    weights = jax.tree.map(
        lambda w, m, v: w - rate * m / (jnp.sqrt(v) + 1e-7),
        weights,
        mean,
        square,
    )
    return (weights, mean, square, count), loss


def _loss(weights, batch, key, case):
    sources, targets, labels = batch
    keys = iter(jax.random.split(key, 8 * case["layers"] + 2))
    token_mask = sources != task.PAD
    memory = _embed(weights, sources, next(keys))
    mask_bias = jnp.where(token_mask, 0.0, -1e30)[:, None, None]
    for layer in weights["encoder"]:
        memory = _attend(layer["self"], memory, memory, mask_bias, keys, case)
        memory = _network(layer["network"], memory, keys)
    x = _embed(weights, targets, next(keys))
    length = targets.shape[1]
    causal = jnp.tril(jnp.ones((length, length), bool))
    causal = causal & (targets != task.PAD)[:, None, None]
    causal = jnp.where(causal, 0.0, -1e30)
    for layer in weights["decoder"]:
        x = _attend(layer["self"], x, x, causal, keys, case)
        x = _attend(layer["cross"], x, memory, mask_bias, keys, case)
        x = _network(layer["network"], x, keys)
    log_p = jax.nn.log_softmax(x @ weights["table"].T)
    picked = jnp.take_along_axis(log_p, labels[..., None], -1)[..., 0]
    losses = (task.SMOOTHING - 1) * picked
    losses = losses - task.SMOOTHING * log_p.mean(-1)
    visible = labels != task.PAD
    return jnp.sum(jnp.where(visible, losses, 0)) / jnp.sum(visible)


def _embed(weights, ids, key):
    width = weights["table"].shape[1]
    token_positions = jnp.arange(ids.shape[1])[:, None]
    angles = token_positions * 10000.0 ** (-jnp.arange(0, width, 2) / width)
    positions = jnp.stack([jnp.sin(angles), jnp.cos(angles)], -1)
    positions = positions.reshape(ids.shape[1], width)
    return _drop(weights["table"][ids] * width**0.5 + positions, key)


def _attend(weights, x, memory, mask, keys, case):
    heads = case["heads"]

    def project(name, values):
        projected = values @ weights[name] + weights[f"{name}_bias"]
        return projected.reshape(*values.shape[:2], heads, -1)

    query, key, value = (
        project(name, values)
        for name, values in (("q", x), ("k", memory), ("v", memory))
    )
    scores = jnp.einsum("btnh,bsnh->bnts", query, key)
    probabilities = jax.nn.softmax(scores * query.shape[-1] ** -0.5 + mask)
    mixed = jnp.einsum(
        "bnts,bsnh->btnh", _drop(probabilities, next(keys)), value
    )
    output = mixed.reshape(x.shape) @ weights["o"] + weights["o_bias"]
    return _norm(weights, x + _drop(output, next(keys)))


def _network(weights, x, keys):
    inner = jax.nn.relu(x @ weights["in"] + weights["in_bias"])
    output = inner @ weights["out"] + weights["out_bias"]
    return _norm(weights, x + _drop(output, next(keys)))


def _norm(weights, x):
    mean = x.mean(-1, keepdims=True)
    variance = jnp.square(x - mean).mean(-1, keepdims=True)
    x = (x - mean) * jax.lax.rsqrt(variance + 1e-5)
    return x * weights["scale"] + weights["shift"]


def _drop(x, key):
    keep = jax.random.bernoulli(key, 1 - task.DROPOUT, x.shape)
    return jnp.where(keep, x / (1 - task.DROPOUT), 0)


def _weights(case, rng):
    width, inner = case["width"], case["inner"]

    def dense(name, fan_in, fan_out):
        limit = (6 / (fan_in + fan_out)) ** 0.5
        kernel = rng.uniform(-limit, limit, (fan_in, fan_out))
        return {
            name: jnp.asarray(kernel, "float32"),
            f"{name}_bias": jnp.zeros(fan_out),
        }

    def norm():
        return {"scale": jnp.ones(width), "shift": jnp.zeros(width)}

    def attention():
        parts = [dense(name, width, width) for name in "qkvo"]
        return {k: v for part in [*parts, norm()] for k, v in part.items()}

    def network():
        parts = dense("in", width, inner), dense("out", inner, width), norm()
        return {k: v for part in parts for k, v in part.items()}

    table = rng.normal(scale=width**-0.5, size=(case["vocabulary"], width))
    layers = range(case["layers"])
    return {
        "table": jnp.asarray(table, "float32"),
        "encoder": [
            {"self": attention(), "network": network()} for _ in layers
        ],
        "decoder": [
            {"self": attention(), "cross": attention(), "network": network()}
            for _ in layers
        ],
    }
