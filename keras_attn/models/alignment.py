"""Where each generated token looked: one pass over what was generated."""

from keras import ops

from keras_attn import cache as kv
from keras_attn.ops import capture_weights


def cross_attention_weights(model, layers, inputs, tokens, lengths):
    """Runs one teacher-forced pass, and keeps its cross-attention.

    The sequences of one source are queries of one memory, which is not copied.

    Args:
        model: what offers the decoding protocol.
        layers: list of the M attention layers to look at, called once a step.
        inputs: what `start_decoding` takes, B sources.
        tokens: int32 (B, t, L), as generated.
        lengths: int32 (B, t). Tokens behind them get zeros.

    Returns:
        Float32 (B, t, M, N, L, S): row l is how the model looked at the source
        when it chose token l.
    """
    sources, count, length = tokens.shape
    state = model.start_decoding(inputs, length)
    rows = ops.repeat(ops.arange(sources, dtype="int32"), count)
    taken = ops.concatenate(
        [
            ops.take(state.tokens, rows, axis=0),
            ops.reshape(tokens, (-1, length))[:, :-1],
        ],
        axis=1,
    )
    state = state._replace(hypothesis=kv.reorder(state.hypothesis, rows))
    with capture_weights() as captured:
        model.decode_step(taken, state)
    weights = ops.stack([captured[layer.path, 0] for layer in layers], axis=1)
    _, depth, heads, _, size = weights.shape
    weights = ops.reshape(weights, (sources, depth, heads, count, length, size))
    weights = ops.transpose(ops.cast(weights, "float32"), (0, 3, 1, 2, 4, 5))
    there = ops.arange(length, dtype="int32") < lengths[..., None]
    return ops.where(there[:, :, None, None, :, None], weights, 0.0)
