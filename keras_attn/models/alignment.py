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
    taken, state = teacher_forced(model, inputs, tokens)
    with capture_weights() as captured:
        model.decode_step(taken, state)
    weights = ops.stack([captured[layer.path, 0] for layer in layers], axis=1)
    _, depth, heads, _, size = weights.shape
    weights = ops.reshape(weights, (sources, depth, heads, count, length, size))
    weights = ops.transpose(ops.cast(weights, "float32"), (0, 3, 1, 2, 4, 5))
    return up_to_the_end(weights, lengths)


def teacher_forced(model, inputs, tokens):
    """Returns what one step takes that reads all generated sequences.

    Args:
        model: what offers the decoding protocol.
        inputs: what `start_decoding` takes, B sources.
        tokens: int32 (B, t, L), as generated.

    Returns:
        Tokens, int32 (B t, L), the start in front and the last left out, and
        `DecodingState`.
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
    hypothesis = kv.reorder(state.hypothesis, rows)
    return taken, state._replace(hypothesis=hypothesis)


def up_to_the_end(weights, lengths):
    """Puts zeros behind the ends.

    Args:
        weights: float32 (B, t, M, N, L, S).
        lengths: int32 (B, t).

    Returns:
        Float32 (B, t, M, N, L, S).
    """
    lengths = ops.convert_to_tensor(lengths)  # NumPy's, from outside `generate`
    token_mask = (
        ops.arange(weights.shape[4], dtype="int32") < lengths[..., None]
    )
    return ops.where(token_mask[:, :, None, None, :, None], weights, 0.0)
