"""A Transformer with a cache, as functions of JAX arrays."""

import math

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks.decoding import task
from benchmarks.decoding import weights as drawing


def ready(case, drawn):
    """Returns the weights in the form used by this module."""
    length = max(case["length"], case["new"])
    made = {
        "table": drawn["table"],
        # Tied, but a transpose in the loop would run at every step.
        "output": drawn["table"].T.copy(),
        "positions": drawing.positions(length, case["width"]),
        "bias": task.logits_bias(case),
    }
    for side in ("encoder", "decoder"):
        made[side] = [
            {name: _joined(parts) for name, parts in layer.items()}
            for layer in drawn[side]
        ]
    return jax.tree.map(jnp.asarray, made)


def encode(case, weights, sources):
    """Encodes sources, int32 (B, S).

    Returns:
        Keys and values of each decoder layer, float (B, N, S, H), and the mask
        bias of their scores, float (B, 1, 1, S).
    """
    length = sources.shape[1]
    mask_bias = jnp.where(sources != task.PAD, 0.0, -1e30)[:, None, None]
    x = weights["table"][sources] * math.sqrt(case["width"])
    x += weights["positions"][:length]
    for layer in weights["encoder"]:
        part = layer["self"]
        query, key, value = _heads(case, part, x, "qkv")
        mixed = _attend(query, key, value, mask_bias)
        x = _add_and_norm(part, x, mixed.transpose(0, 2, 1, 3).reshape(x.shape))
        x = _network(layer["network"], x)
    memory = [
        _heads(case, layer["cross"], x, "kv") for layer in weights["decoder"]
    ]
    return memory, mask_bias


def caches(case, rows):
    """Returns empty caches: keys and values, (B k N, L, H), per layer."""
    shape = rows * case["beams"] * case["heads"], case["new"]
    shape = (*shape, case["width"] // case["heads"])
    return [(jnp.zeros(shape), jnp.zeros(shape)) for _ in range(case["layers"])]


def step(case, weights, ids, slot, cache, memory, mask_bias):
    """Returns the logits after int32 (B, k), float (B, k, V), and caches."""
    rows, beams = ids.shape
    x = weights["table"][ids.reshape(-1)] * math.sqrt(case["width"])
    x += weights["positions"][slot]
    later = jnp.where(jnp.arange(case["new"]) <= slot, 0.0, -1e30)
    written = []
    for layer, pair, (keys, values) in zip(
        weights["decoder"], cache, memory, strict=True
    ):
        part = layer["self"]
        query, *new = _heads(case, part, x[:, None], "qkv")
        pair = [
            jax.lax.dynamic_update_slice_in_dim(
                old, row.reshape(-1, 1, old.shape[-1]), slot, 1
            )
            for old, row in zip(pair, new, strict=True)
        ]
        written.append(tuple(pair))
        query = query.reshape(-1, 1, query.shape[-1])
        mixed = _attend(query, *pair, later)
        x = _add_and_norm(part, x, mixed.reshape(x.shape))
        part = layer["cross"]
        # The hypotheses of a source are its queries, so memory is not copied.
        (query,) = _heads(case, part, x.reshape(rows, beams, -1), "q")
        mixed = _attend(query, keys, values, mask_bias)
        x = _add_and_norm(part, x, mixed.transpose(0, 2, 1, 3).reshape(x.shape))
        x = _network(layer["network"], x)
    logits = x @ weights["output"] + weights["bias"]
    return logits.reshape(rows, beams, -1), written


def _heads(case, weights, x, name):
    """Projects (B, T, D) to (B, N, T, H) for each letter of `name`."""
    projected = _dense(x, weights, name)
    projected = projected.reshape(
        *x.shape[:2], len(name), case["heads"], -1
    ).transpose(2, 0, 3, 1, 4)
    return list(projected)


def _attend(query, key, value, mask_bias):
    scores = jnp.einsum("...th,...sh->...ts", query, key)
    probabilities = jax.nn.softmax(scores * query.shape[-1] ** -0.5 + mask_bias)
    return jnp.einsum("...ts,...sh->...th", probabilities, value)


def _dense(x, weights, name):
    return x @ weights[name] + weights[f"{name}_bias"]


def _add_and_norm(weights, x, mixed):
    return _norm(weights, x + _dense(mixed, weights, "o"))


def _network(weights, x):
    inner = jax.nn.relu(_dense(x, weights, "in"))
    return _norm(weights, x + _dense(inner, weights, "out"))


def _norm(weights, x):
    mean = x.mean(-1, keepdims=True)
    variance = jnp.square(x - mean).mean(-1, keepdims=True)
    x = (x - mean) * jax.lax.rsqrt(variance + 1e-5)
    return x * weights["scale"] + weights["shift"]


def _joined(parts):
    """Concatenates the projections of one input."""
    for names in ("qkv", "kv") if "q" in parts else ():
        for end in ("", "_bias"):
            arrays = [parts[name + end] for name in names]
            parts = {**parts, names + end: np.concatenate(arrays, axis=-1)}
    return parts
