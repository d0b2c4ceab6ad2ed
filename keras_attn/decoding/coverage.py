"""Coverage of the source by the attention of each hypothesis."""

from typing import Any

import numpy as np
from keras import ops

from keras_attn.decoding.protocol import DecodingState
from keras_attn.typing import Nest, Tensor


def start_with_coverage(model: Any, inputs: Nest, length: int) -> DecodingState:
    """Starts decoding, with nothing covered.

    Args:
        model: object that implements the decoding protocol, with `attend_step`.
        inputs: nest of tensors for its `start_decoding`.
        length: int. Slots for tokens.

    Returns:
        `DecodingState` with a pair as `hypothesis`: that of the model, and
        float32 (B, S), the attention that each source token has received.
    """
    state = model.start_decoding(inputs, length)
    covered = ops.cast(model.source_mask(state.memory), "float32") * 0
    return state._replace(hypothesis=(state.hypothesis, covered))


def step_with_coverage(
    model: Any, state: DecodingState
) -> tuple[Tensor, DecodingState, Tensor]:
    """Runs a step and adds up its attention.

    Args:
        model: as for `start_with_coverage`.
        state: `DecodingState`, consumed; its rows are those of k hypotheses per
            source.

    Returns:
        The logits; the next state; the coverage of each hypothesis, float32
        (B, k), sum_i log(min(c_i, 1)) for the attention c_i to source token i.
    """
    hypothesis, covered = state.hypothesis
    token_mask = model.source_mask(state.memory)
    sources, length = token_mask.shape
    logits, state, weights = model.attend_step(
        state.tokens, state._replace(hypothesis=hypothesis)
    )
    covered = covered + ops.reshape(ops.cast(weights, "float32"), covered.shape)
    # Weights can be 0, whose logarithm would exclude the hypothesis.
    least = float(np.finfo("float32").tiny)
    logs = ops.log(ops.clip(covered, least, 1.0))
    logs = ops.reshape(logs, (sources, -1, length))
    logs = ops.where(token_mask[:, None], logs, 0.0)
    state = state._replace(hypothesis=(state.hypothesis, covered))
    return logits, state, ops.sum(logs, axis=-1)
