"""Greedy and beam search in plain JAX, as one compiled program."""

import functools
import math

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from benchmarks.decoding import bare_jax_model as model
from benchmarks.decoding import task, weights


def prepare(case):
    """Returns a callable that decodes batches."""
    return task.runner(decoder(case, weights.draw(case)), task.sources(case))


def decoder(case, drawn):
    """Returns a callable that decodes int32 (B, S) to int32 (B, new)."""
    ready = jax.tree.map(jnp.asarray, model.ready(case, drawn))
    search = _greedy if case["beams"] == 1 else _beams
    program = jax.jit(functools.partial(search, case))
    return lambda sources: program(ready, sources)


def _greedy(case, weights, sources):
    memory, hidden = model.encode(case, weights, sources)
    rows = len(sources)

    def unfinished(loop):
        slot, _, _, _, ended = loop
        return (slot < case["new"]) & ~ended.all()

    def advance(loop):
        slot, ids, found, cache, ended = loop
        logits, cache = model.step(
            case, weights, ids[:, None], slot, cache, memory, hidden
        )
        ids = jnp.where(ended, task.PAD, _first_of_largest(logits[:, 0]))
        found = lax.dynamic_update_index_in_dim(found, ids, slot, 1)
        return slot + 1, ids, found, cache, ended | (ids == task.END)

    loop = (
        jnp.int32(0),
        jnp.full(rows, task.START),
        jnp.full((rows, case["new"]), task.PAD),
        model.caches(case, rows),
        jnp.zeros(rows, bool),
    )
    return lax.while_loop(unfinished, advance, loop)[2]


def _beams(case, weights, sources):
    memory, hidden = model.encode(case, weights, sources)
    rows, beams, new = len(sources), case["beams"], case["new"]

    def unfinished(loop):
        slot, _, scores, _, best, _ = loop
        return (slot < new) & (scores[:, 0] > best).any()

    def advance(loop):
        slot, tokens, scores, cache, best, ended_tokens = loop
        # Slot 0 is the start token.
        ids = lax.dynamic_index_in_dim(tokens, slot, 2, keepdims=False)
        logits, cache = model.step(
            case, weights, ids, slot, cache, memory, hidden
        )
        # The top 2k of a source are among the top 2k of each hypothesis.
        gained, chosen = _largest_log_probs(logits, beams)
        totals = scores[..., None] + gained
        totals, indices = lax.top_k(totals.reshape(rows, -1), 2 * beams)
        origins = indices // (2 * beams)
        chosen = _take(chosen.reshape(rows, -1), indices)
        ended = chosen == task.END
        tokens = lax.dynamic_update_index_in_dim(
            _take(tokens, origins), chosen, slot + 1, 2
        )
        finished = jnp.where(ended, -math.inf, totals)
        won = jnp.where(ended, totals, -math.inf)[:, :beams]
        index = won.argmax(1)[:, None]
        won = _take(won, index)[:, 0]
        ended_tokens = jnp.where(
            (won > best)[:, None], _take(tokens, index)[:, 0], ended_tokens
        )
        best = jnp.maximum(won, best)
        scores, indices = lax.top_k(finished, beams)
        tokens = _take(tokens, indices)
        cache = _reordered(cache, _take(origins, indices))
        return slot + 1, tokens, scores, cache, best, ended_tokens

    # Start with one hypothesis: equal ones would have equal continuations.
    scores = np.full((rows, beams), -math.inf, "float32")
    scores[:, 0] = 0
    tokens = np.full((rows, beams, new + 1), task.PAD, "int32")
    tokens[..., 0] = task.START
    loop = (
        jnp.int32(0),
        jnp.asarray(tokens),
        jnp.asarray(scores),
        model.caches(case, rows),
        jnp.full(rows, -math.inf),
        jnp.asarray(tokens[:, 0]),
    )
    loop = lax.while_loop(unfinished, advance, loop)
    _, tokens, scores, _, best, ended_tokens = loop
    live = (scores[:, 0] > best)[:, None]
    return jnp.where(live, tokens[:, 0], ended_tokens)[:, 1:]


def _first_of_largest(logits):
    """Returns the most likely ids, int32 (B,).

    XLA vectorizes a maximum and a minimum, but not an `argmax`.
    """
    most = logits.max(-1, keepdims=True)
    ids = lax.broadcasted_iota(jnp.int32, logits.shape, logits.ndim - 1)
    return jnp.where(logits == most, ids, logits.shape[-1]).min(-1)


def _largest_log_probs(logits, beams):
    """Returns the top 2k of (B, k, V): log-probabilities and ids."""
    best, chosen = lax.top_k(logits, 2 * beams)
    return best - jax.nn.logsumexp(logits, -1, keepdims=True), chosen


def _take(x, indices):
    indices = indices.reshape(*indices.shape, *[1] * (x.ndim - 2))
    return jnp.take_along_axis(x, indices, axis=1)


def _reordered(cache, origins):
    rows, beams = origins.shape
    flat = (jnp.arange(rows)[:, None] * beams + origins).reshape(-1)

    def taken(x):
        return x.reshape(rows * beams, -1, x.shape[-1])[flat].reshape(x.shape)

    return jax.tree.map(taken, cache)
