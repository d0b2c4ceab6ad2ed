"""Cross-attention weights of generated sequences."""

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from keras import ops

from keras_attn import cache as kv
from keras_attn import checks
from keras_attn.layers.id_range import check_id_range
from keras_attn.ops import capture_weights
from keras_attn.typing import Nest, Tensor, TensorLike

if TYPE_CHECKING:
    from keras_attn.decoding.protocol import DecodingState


def cross_attention_weights(
    model: Any,
    layers: Sequence[Any],
    inputs: Nest,
    tokens: TensorLike,
    lengths: TensorLike,
) -> Tensor:
    """Computes cross-attention weights in one teacher-forced pass.

    All sequences of one source attend to the same memory, which is not copied.

    Args:
        model: a model that implements the decoding protocol.
        layers: list of the M attention layers to capture, each called once per
            step.
        inputs: B sources, as for `start_decoding`.
        tokens: int32 (B, t, L), as generated.
        lengths: int32 (B, t). Weights past the end of a sequence are zeros.

    Returns:
        Float32 (B, t, M, N, L, S): row l has the attention weights over the
        source at the step that chose token l.
    """
    fed_tokens, state = teacher_forced(model, inputs, tokens)
    check_lengths(lengths, tokens)
    sources, count, length = tokens.shape
    with capture_weights() as captured:
        model.decode_step(fed_tokens, state)
    weights = ops.stack([captured[layer.path, 0] for layer in layers], axis=1)
    _, depth, heads, _, size = weights.shape
    weights = ops.reshape(weights, (sources, depth, heads, count, length, size))
    weights = ops.transpose(ops.cast(weights, "float32"), (0, 3, 1, 2, 4, 5))
    return up_to_the_end(weights, lengths)


def step_with_weights(
    model: Any, layer: Any, tokens: TensorLike, state: "DecodingState"
) -> "tuple[Tensor, DecodingState, Tensor]":
    """Runs a decoding step and captures the weights of a cross-attention.

    Args:
        model: a model that implements the decoding protocol.
        layer: its attention layer, called once per step.
        tokens: int32 (R, T), of k hypotheses per source.
        state: `DecodingState`, consumed.

    Returns:
        Logits; the next state; float32 (B, k T, S), the mean over the heads.
    """
    with capture_weights(f"^{re.escape(layer.path)}$") as captured:
        logits, state = model.decode_step(tokens, state)
    weights = ops.cast(captured[layer.path, 0], "float32")
    return logits, state, ops.mean(weights, axis=1)


def teacher_forced(
    model: Any, inputs: Nest, tokens: TensorLike
) -> "tuple[Tensor, DecodingState]":
    """Returns the inputs of one step that reads all generated sequences.

    Args:
        model: a model that implements the decoding protocol.
        inputs: B sources, as for `start_decoding`.
        tokens: int32 (B, t, L), as generated.

    Returns:
        Tokens, int32 (B t, L), with the start token prepended and the last
        token dropped, and `DecodingState`.
    """
    checks.rank("tokens", checks.tensor("tokens", tokens), 3)
    checks.integers("tokens", tokens)
    sources, count, length = tokens.shape
    # Sequences are padded with -1 if the model has no padding token.
    check_id_range("tokens", tokens, _target_size(model), least=-1)
    state = model.start_decoding(inputs, length)
    if not checks.fits(tuple(state.tokens.shape[:1]), (sources,)):
        raise ValueError(
            "`tokens` must have one row per source. Received: "
            f"{sources} rows for {state.tokens.shape[0]} sources"
        )
    rows = ops.repeat(ops.arange(sources, dtype="int32"), count)
    fed_tokens = ops.concatenate(
        [
            ops.take(state.tokens, rows, axis=0),
            ops.reshape(tokens, (-1, length))[:, :-1],
        ],
        axis=1,
    )
    hypothesis = kv.reorder(state.hypothesis, rows)
    return fed_tokens, state._replace(hypothesis=hypothesis)


def _target_size(model):
    size = getattr(model, "target_vocabulary_size", None)
    return model.source_vocabulary_size if size is None else size


def check_lengths(lengths: TensorLike, tokens: Any) -> None:
    """Raises ValueError unless there is a length for each sequence."""
    checks.integers("lengths", checks.tensor("lengths", lengths))
    if not checks.fits(tuple(lengths.shape), tuple(tokens.shape[:2])):
        raise ValueError(
            f"`lengths` must have shape {tuple(tokens.shape[:2])}, that of "
            f"`tokens` without the last axis. Received: {tuple(lengths.shape)}"
        )
    check_id_range("lengths", lengths, tokens.shape[2] + 1)


def up_to_the_end(weights: TensorLike, lengths: TensorLike) -> Tensor:
    """Zeros the weights past the end of each sequence.

    Args:
        weights: float32 (B, t, M, N, L, S).
        lengths: int (B, t).

    Returns:
        Float32 (B, t, M, N, L, S).
    """
    # Outside of `generate`, they can be a NumPy array of int64.
    lengths = ops.cast(lengths, "int32")
    steps = ops.arange(weights.shape[4], dtype="int32")
    token_mask = steps < lengths[..., None]
    return ops.where(token_mask[:, :, None, None, :, None], weights, 0.0)
